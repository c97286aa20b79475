/** The controller as a process that can die at any await, on a real SQLite file that stays. */
import { createController, type Controller } from '../../src/control/controller.ts';
import type { LogStore } from '../../src/control/logs.ts';
import { createPlanner, type Planner } from '../../src/control/planner.ts';
import type { Log } from '../../src/lib/log.ts';
import type { Store, WriteBatch } from '../../src/store/contract.ts';
import { openSqlite } from '../../src/store/dialects/sqlite.ts';
import { openHistory } from '../../src/store/open.ts';
import type { Process, World } from './world.ts';

export interface StoreFaults {
  /** The commit happens, but its reply is lost. */
  commitUnknown: number;
  /** The commit does not happen. */
  commitFails: number;
  /** Chance that a commit or a plan takes long. */
  slow: number;
}

export interface ControllerProcessOptions {
  world: World;
  file: string;
  faults: StoreFaults;
  onBoot: (controller: Controller, epoch: number) => void;
  onCommit: (batch: WriteBatch) => void;
  onBroken: (what: string) => void;
}

export const ADMIN_SECRET = 'drv_sim';
export const JOIN_SECRET = 'drj_sim';
export const ATTEMPT_LEASE_MS = 60_000;

const noLogs: LogStore = {
  append: async () => [],
  read: async (_job, query) => ({ records: [], next: query.after }),
  wait: async () => false,
  offsets: async () => ({}),
  close: async () => undefined,
};

export class ControllerProcess {
  readonly #options: ControllerProcessOptions;
  process: Process | null = null;
  controller: Controller | null = null;
  #close: (() => Promise<void>) | null = null;
  boots = 0;

  constructor(options: ControllerProcessOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.process?.alive) return;
    const { world, file, onBoot } = this.#options;
    const process = world.spawn(`controller${++this.boots}`);
    this.process = process;
    const clock = world.clockOf(process);
    const sqlite = { file, cacheBytes: 1 << 20, checkpointPages: 1000 };
    const store = openSqlite(sqlite);
    this.#close = () => store.close();
    const snapshot = await store.boot(clock.now(), 'c0sim');
    if (!process.alive) return;
    const history = openHistory({ kind: 'sqlite', ...sqlite });
    this.#close = async () => {
      await history.close();
      await store.close();
    };
    this.controller = createController({
      snapshot,
      storeKind: 'sqlite',
      writer: { commit: (batch) => this.#commit(process, store, batch) },
      history,
      planner: this.#slowPlanner(process, createPlanner(world.random)),
      logs: noLogs,
      clock,
      random: world.random,
      log: this.#log(),
      settings: {
        clusterName: 'sim',
        timers: {
          workerLeaseMs: 20_000,
          attemptLeaseMs: ATTEMPT_LEASE_MS,
          killMarginMs: 15_000,
          longPollMs: 10_000,
        },
        loops: { scheduleMs: 1000, leasesMs: 1000, deadlinesMs: 1000 },
        pools: [{ name: 'default', largestWorker: null }],
      },
      onFatal: (error) => {
        world.note(`controller gives up: ${(error as Error).message}`);
        this.crash();
      },
    });
    world.note(`controller up, epoch ${snapshot.epoch}`);
    onBoot(this.controller, snapshot.epoch);
    void this.controller.ensureTokens({ admin: ADMIN_SECRET, join: JOIN_SECRET });
  }

  /** Gone between two awaits: memory lost, the file as it is. */
  crash(): void {
    if (!this.process?.alive) return;
    this.process.alive = false;
    this.controller = null;
    this.#options.world.note('controller crashed');
    void this.#close?.();
    this.#close = null;
  }

  /** No more faults of its own. */
  calm(): void {
    Object.assign(this.#options.faults, { commitUnknown: 0, commitFails: 0, slow: 0 });
  }

  /** The writer thread: works later, answers later still; dies with the process. */
  #commit(process: Process, store: Store, batch: WriteBatch): Promise<void> {
    const { world, faults, onCommit } = this.#options;
    const slowMs = world.chance(faults.slow) ? world.between(100, 5000) : world.between(0, 3);
    return new Promise((resolve, reject) => {
      world.after(slowMs, 'commit', () => {
        if (!process.alive) return;
        if (world.chance(faults.commitFails)) {
          reject(new Error('disk full'));
          return;
        }
        void store.commit(batch).then(() => {
          world.note(`commit up to ${batch.seq}`);
          onCommit(batch);
          const unknown = world.chance(faults.commitUnknown);
          world.after(world.between(0, 2), 'committed', () => {
            if (!process.alive) return;
            if (unknown) reject(new Error('the reply to a commit was lost'));
            else world.inside(process, resolve);
          });
        }, reject);
      });
    });
  }

  #slowPlanner(process: Process, planner: Planner): Planner {
    const { world, faults } = this.#options;
    return {
      async plan(deltas, nowMs) {
        const plan = await planner.plan(structuredClone(deltas), nowMs);
        const slowMs = world.chance(faults.slow) ? world.between(10, 2000) : 0;
        return new Promise((resolve) => {
          world.after(slowMs, 'planned', () => world.inside(process, () => resolve(plan)));
        });
      },
    };
  }

  /** An error in the log of production code is a finding. */
  #log(): Log {
    const { onBroken } = this.#options;
    const log: Log = {
      debug() {},
      info() {},
      warn() {},
      error: (fields, message) => onBroken(`${message}: ${JSON.stringify(fields)}`),
      child: () => log,
    };
    return log;
  }
}
