/** The controller as a process that can die at any await, on a real SQLite file that stays. */
import type { PoolPolicy } from '../../src/core/placement/admission.ts';
import type { SchedulePolicy } from '../../src/core/schedule/plan.ts';
import {
  createController,
  type Controller,
  type ControllerOptions,
} from '../../src/control/controller.ts';
import { createJoinSecrets } from '../../src/control/pools/joinSecrets.ts';
import type { ManagedPool } from '../../src/control/pools/pool.ts';
import { createPlanner, type Planner } from '../../src/control/planner.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { Log } from '../../src/lib/log.ts';
import type { Store, WriteBatch } from '../../src/store/contract.ts';
import { openSqlite } from '../../src/store/dialects/sqlite.ts';
import { openHistory } from '../../src/store/open.ts';
import type { Checker } from './checkers/checker.ts';
import type { Commit } from './checkers/mirror.ts';
import { Disk } from './checkers/disk.ts';
import type { Coverage } from './coverage.ts';
import type { CrashPoints } from './crashPoints.ts';
import { CLUSTER_ID, keepAsIs, sqliteOptions } from './database.ts';
import type { LogDisk } from './logs.ts';
import { admitEverybody } from './people.ts';
import { copyOf } from './plainData.ts';
import type { Host, Process, World } from './world.ts';

interface StoreFaults {
  /** The commit happens, but its reply is lost. */
  commitUnknown: number;
  /** The commit does not happen. */
  commitFails: number;
  /** Chance that a commit or a plan takes long. */
  slow: number;
}

export const CONTROLLER_POINTS = {
  'before commit': 150,
  'after commit': 150,
  'with changes applied': 200,
  'before an answer': 300,
  'with a plan in hand': 40,
  'before a launch': 20,
  'with a launch on its way': 20,
  'with the answer to a launch': 20,
  'with a listing': 60,
  'before a destroy': 15,
  'with the answer to a destroy': 15,
} as const;
export type ControllerPoint = keyof typeof CONTROLLER_POINTS;

export interface ControllerProcessOptions {
  world: World;
  file: string;
  pools: readonly PoolPolicy[];
  logs: LogDisk;
  policy: SchedulePolicy;
  faults: StoreFaults;
  points: CrashPoints<ControllerPoint>;
  checker: () => Checker;
  coverage: () => Coverage;
  onCommit: (commit: Commit) => void;
  /** Pools whose machines come by themselves; then the other loops are in less of a hurry. */
  manage?: (clock: Clock) => ManagedPool[];
}

export const TIMERS = {
  workerLeaseMs: 12_000,
  attemptLeaseMs: 30_000,
  killMarginMs: 8000,
  longPollMs: 8000,
};
const LOOPS = {
  scheduleMs: 1000,
  leasesMs: 1000,
  deadlinesMs: 1000,
  chargesMs: 1000,
  noticesMs: 1000,
  capacityMs: 1000,
};

const CALM_LOOPS = {
  ...LOOPS,
  leasesMs: 3000,
  deadlinesMs: 3000,
  chargesMs: 5000,
  noticesMs: 9000,
};

const JOIN_KEY = 'a key that outlives controllers';

export class ControllerProcess {
  readonly #options: ControllerProcessOptions;
  readonly #world: World;
  readonly host: Host = { wallOffsetMs: 0 };
  process: Process | null = null;
  controller: Controller | null = null;
  disk: Disk | null = null;
  #close: (() => Promise<void>) | null = null;
  boots = 0;
  /** Keys whose commit was answered by nobody, though it happened. */
  unknownCommits = 0;

  constructor(options: ControllerProcessOptions) {
    this.#options = options;
    this.#world = options.world;
  }

  async start(): Promise<void> {
    if (this.process?.alive) return;
    const { file, checker, coverage } = this.#options;
    const world = this.#world;
    const process = world.spawn('controller', this.host);
    this.process = process;
    this.boots++;
    const clock = world.clockOf(process);
    const sqlite = sqliteOptions(file);
    const store = openSqlite(sqlite);
    const snapshot = await store.boot(clock.now(), CLUSTER_ID);
    const history = openHistory({ kind: 'sqlite', ...sqlite });
    const disk = new Disk(file);
    this.disk = disk;
    this.#close = async () => {
      disk.close();
      await history.close();
      await store.close();
    };
    world.note('controller', `up, epoch ${snapshot.epoch}`);
    coverage().boots = this.boots;
    checker().booted(snapshot.epoch);
    this.controller = createController({
      ...{ snapshot, history, logs: this.#options.logs.open(world, process), storeKind: 'sqlite' },
      writer: { commit: (batch) => this.#commit(process, store, batch) },
      planner: this.#slowPlanner(process, createPlanner(world.random, this.#options.policy)),
      ...this.#fleet(clock),
      clock: this.#mortalClock(clock),
      random: world.random,
      log: findingLog((what) => checker().broken(what)),
      settings: {
        clusterName: 'sim',
        timers: TIMERS,
        loops: this.#options.manage ? CALM_LOOPS : LOOPS,
        pools: this.#options.pools,
        schedule: this.#options.policy,
      },
      onFatal: (error) => this.crash((error as Error).message),
    });
    void admitEverybody(this.controller);
  }

  /** Gone between two awaits: memory lost, the files as they are. */
  crash(why: string): void {
    if (!this.process?.alive) return;
    this.process.alive = false;
    this.controller = null;
    this.disk = null;
    this.#world.note('controller', `crashed: ${why}`);
    const restore = keepAsIs(this.#options.file);
    void this.#close?.();
    this.#close = null;
    restore();
  }

  /** Dies here when the seed says so. */
  point(name: ControllerPoint): boolean {
    if (!this.process?.alive || !this.#options.points.passes(name)) return false;
    this.#options.coverage().saw(`controller crash ${name}`);
    this.crash(name);
    return true;
  }

  /** No more faults of its own. */
  calm(): void {
    Object.assign(this.#options.faults, { commitUnknown: 0, commitFails: 0, slow: 0 });
    this.#options.points.disarm();
  }

  #fleet(clock: Clock): Pick<ControllerOptions, 'fleet'> {
    const pools = this.#options.manage?.(clock);
    if (!pools) return {};
    const agent = () => ({ url: 'http://controller', authorities: '' });
    return { fleet: { pools, launching: { joinSecrets: createJoinSecrets(JOIN_KEY), agent } } };
  }

  /** `soon` is where batches begin: what was applied before it is in nobody's hands yet. */
  #mortalClock(clock: Clock): Clock {
    return {
      ...clock,
      soon: (run) =>
        clock.soon(() => {
          if (!this.point('with changes applied')) run();
        }),
    };
  }

  /** The writer thread: works later, answers later still; stops and dies with the process. */
  #commit(process: Process, store: Store, batch: WriteBatch): Promise<void> {
    const { faults, coverage } = this.#options;
    const world = this.#world;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const work = (): void => {
      if (this.point('before commit')) return;
      if (world.chance(faults.commitFails)) {
        coverage().saw('commit failed');
        reject(new Error('disk full'));
        return;
      }
      // SQLite does it at once; the promise is only the contract's.
      store.commit(batch).catch((error: unknown) => reject(error as Error));
      this.#committed(batch);
      if (this.point('after commit')) return;
      const unknown = world.chance(faults.commitUnknown);
      world.after(world.between(0, 2), () =>
        world.inside(process, () => {
          if (!unknown) return resolve();
          this.unknownCommits++;
          coverage().saw('commit unknown');
          reject(new Error('the reply to a commit was lost'));
        }),
      );
    };
    const slowMs = world.chance(faults.slow) ? world.between(100, 5000) : world.between(0, 3);
    world.after(slowMs, () => world.inside(process, work));
    return promise;
  }

  #committed(batch: WriteBatch): void {
    const { checker, coverage } = this.#options;
    const commit = checker().committed(batch);
    coverage().committed(commit);
    this.#options.onCommit(commit);
    for (const { kind, job, task, attempt, worker, data } of commit.events) {
      const about = [attempt ?? task ?? job ?? '', worker ?? '', data].join(' ');
      this.#world.note('committed', `${kind} ${about}`);
    }
  }

  #slowPlanner(process: Process, planner: Planner): Planner {
    const { faults, coverage } = this.#options;
    const world = this.#world;
    let planned: string[] = [];
    return {
      ...planner,
      plan: async (deltas, nowMs) => {
        const gone = new Set<string>(deltas.claimsGone);
        const stale = planned.filter((uid) => gone.has(uid) && !coverage().knows(uid));
        if (stale.length > 0) coverage().saw('stale placement', stale.length);
        const plan = await planner.plan(copyOf(deltas), nowMs);
        planned = plan.placements.flatMap((one) => one.tasks.map(({ claim }) => claim.owner));
        if (plan.placements.length > 0 && this.point('with a plan in hand')) {
          return new Promise(() => undefined);
        }
        const slowMs = world.chance(faults.slow) ? world.between(10, 3000) : world.between(0, 20);
        return new Promise((resolve) => {
          world.after(slowMs, () => world.inside(process, () => resolve(plan)));
        });
      },
    };
  }
}

/** An error in the log of production code is a finding. */
export function findingLog(found: (what: string) => void): Log {
  const log: Log = {
    debug() {},
    info() {},
    warn() {},
    error: (fields, message) => found(`${message}: ${describe(fields)}`),
    child: () => log,
  };
  return log;
}

function describe(fields: object): string {
  return JSON.stringify(fields, (_key, value: unknown) =>
    value instanceof Error ? (value.stack ?? value.message) : value,
  );
}
