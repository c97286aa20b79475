/** The real controller in this thread, on a real SQLite file and a clock of the test's own. */
import { DEFAULT_POLICY } from '../../src/core/schedule/plan.ts';
import { freePool, type PoolPolicy } from '../../src/core/placement/admission.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createController, type Controller } from '../../src/control/controller.ts';
import type { ControllerOptions } from '../../src/control/controller.ts';
import type { LogStore } from '../../src/control/logs.ts';
import type { Channels } from '../../src/control/notices.ts';
import type { Minter } from '../../src/exchange/mint.ts';
import { createPlanner } from '../../src/control/planner.ts';
import { silentLog, type Log } from '../../src/lib/log.ts';
import { seededRandom } from '../../src/lib/random.ts';
import type { Principal } from '../../src/model/token.ts';
import type { Observation, Timers } from '../../src/protocol/agent.ts';
import type { JoinReply, JoinRequest, SyncReply, SyncRequest } from '../../src/protocol/agent.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import { jobSpec, type SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import { NO_POLICY, type PolicySource } from '../../src/protocol/policy.ts';
import type { TellDefaults } from '../../src/state/notices.ts';
import type { History, Store, WriteBatch } from '../../src/store/contract.ts';
import { openSqlite } from '../../src/store/dialects/sqlite.ts';
import { openHistory } from '../../src/store/open.ts';
import { ManualClock } from './manualClock.ts';

const ADMIN_SECRET = 'drv_test';
export const JOIN_SECRET = 'drj_test';
export const TIMERS: Timers = {
  workerLeaseMs: 30_000,
  attemptLeaseMs: 60_000,
  killMarginMs: 15_000,
  longPollMs: 10_000,
};

const noLogs: LogStore = {
  append: async (chunks) =>
    chunks.map(({ uid, stream, offset, bytes }) => ({
      uid,
      stream,
      offset: offset + bytes.length,
    })),
  read: async (_job, query) => ({ records: [], next: query.after }),
  wait: async () => false,
  offsets: async () => ({}),
  close: async () => undefined,
};

export interface TestControllerOptions {
  pools?: PoolPolicy[];
  logs?: LogStore;
  jobMetrics?: LogStore;
  log?: Log;
  /** Stands between the controller and the disk. */
  commit?: (store: Store, batch: WriteBatch) => Promise<void>;
  history?: (real: History) => History;
  onFatal?: (error: unknown) => void;
  channels?: Channels;
  tell?: TellDefaults;
  minter?: Minter;
  policy?: PolicySource;
  /** Pools with a provider, for each process anew. */
  fleet?: (test: TestController) => NonNullable<ControllerOptions['fleet']>;
  connectors?: (clock: ManualClock) => NonNullable<ControllerOptions['connectors']>;
}

export class TestController {
  readonly clock = new ManualClock();
  readonly folder = mkdtempSync(join(tmpdir(), 'drover-controller-'));
  readonly #options: TestControllerOptions;
  #machines = 0;
  #stop: () => Promise<void> = async () => undefined;
  #abandon: () => Promise<void> = async () => undefined;
  controller!: Controller;
  admin!: Principal;

  constructor(options: TestControllerOptions = {}) {
    this.#options = options;
  }

  get it(): Coordinator {
    return this.controller.coordinator;
  }

  async start(): Promise<this> {
    const { commit, history: wrap = (real) => real, onFatal = fail } = this.#options;
    const file = join(this.folder, 'drover.db');
    const sqlite = { file, cacheBytes: 1 << 20, checkpointPages: 1000 };
    const store = openSqlite(sqlite);
    const snapshot = await store.boot(this.clock.now(), 'c0test');
    const history = wrap(openHistory({ kind: 'sqlite', ...sqlite }));
    const random = seededRandom(this.clock.bootMs());
    this.controller = createController({
      snapshot,
      storeKind: 'sqlite',
      writer: commit ? { commit: (batch) => commit(store, batch) } : store,
      history,
      planner: createPlanner(random),
      logs: this.#options.logs ?? noLogs,
      ...(this.#options.jobMetrics && { jobMetrics: this.#options.jobMetrics }),
      clock: this.clock,
      random,
      minter: this.#options.minter,
      channels: this.#options.channels ?? new Map(),
      policy: this.#options.policy ?? NO_POLICY,
      ...(this.#options.fleet && { fleet: this.#options.fleet(this) }),
      ...(this.#options.connectors && { connectors: this.#options.connectors(this.clock) }),
      log: this.#options.log ?? silentLog,
      settings: {
        clusterName: 'test',
        timers: TIMERS,
        loops: {
          scheduleMs: 1000,
          leasesMs: 1000,
          deadlinesMs: 1000,
          chargesMs: 1000,
          noticesMs: 1000,
          capacityMs: 1000,
        },
        pools: this.#options.pools ?? [freePool('default')],
        schedule: DEFAULT_POLICY,
        tell: this.#options.tell ?? {},
      },
      onFatal,
    });
    this.#abandon = async () => {
      await history.close();
      await store.close();
    };
    this.#stop = async () => {
      const closing = this.controller.close();
      if (this.#options.fleet) await this.#passUntil(closing);
      else await this.clock.run(closing);
      await this.#abandon();
    };
    const tokens = { admin: ADMIN_SECRET, join: JOIN_SECRET };
    await this.clock.run(this.controller.ensureTokens(tokens));
    this.admin = (await this.clock.run(this.it.authenticate(ADMIN_SECRET))) as Principal;
    return this;
  }

  /** A step in progress may wait for a provider, which takes its time. */
  async #passUntil(closing: Promise<void>): Promise<void> {
    const closed = { yet: false };
    void closing.then(() => (closed.yet = true));
    while (!closed.yet) await this.clock.advance(1000);
  }

  /** Nothing more of it reaches the disk; start() is the next process. */
  async crash(): Promise<void> {
    await this.#abandon();
    await this.clock.advance(1000);
  }

  /** As a new process on the same file. */
  async restart(): Promise<void> {
    await this.#stop();
    await this.clock.advance(1000);
    await this.start();
  }

  async close(): Promise<void> {
    await this.#stop();
    rmSync(this.folder, { recursive: true });
  }

  async submit(...specs: Partial<SubmittedSpec>[]): Promise<string[]> {
    const request = {
      specs: specs.map((fields) => jobSpec.parse({ command: ['true'], ...fields })),
      idempotencyKey: null,
      bodyHash: null,
    };
    return (await this.clock.run(this.it.submit(this.admin, request))).ids;
  }

  async joinAgent(more: Partial<JoinRequest> = {}): Promise<TestAgent> {
    const agent = new TestAgent(this, { ...machine(`m${++this.#machines}`), ...more });
    await agent.join();
    return agent;
  }
}

/** An agent that runs nothing and says what a test tells it to say. */
export class TestAgent {
  readonly #test: TestController;
  readonly request: JoinRequest;
  joined!: JoinReply;
  start = 1;
  seq = 0;
  epoch = 0;
  /** For worlds in which it runs something. */
  readonly runs = new Map<string, Observation>();

  constructor(test: TestController, request: JoinRequest) {
    this.#test = test;
    this.request = request;
  }

  async join(secret = JOIN_SECRET): Promise<void> {
    this.joined = await this.#test.clock.run(this.#test.it.join(secret, this.request));
  }

  /** Under way: resolves when the controller answers, which may be after time has passed. */
  send(observed: Observation[] = [], more: Partial<SyncRequest> = {}): Promise<SyncReply> {
    const call = this.#test.it.sync(this.joined.token, {
      worker: this.joined.worker,
      bootId: this.request.bootId,
      start: this.start,
      seq: ++this.seq,
      epoch: this.epoch,
      observed,
      wait: false,
      ...more,
    });
    // A test may look at a refusal after it has come.
    call.catch(() => undefined);
    return call;
  }

  async sync(observed: Observation[] = [], more: Partial<SyncRequest> = {}): Promise<SyncReply> {
    const reply = await this.#test.clock.run(this.send(observed, more));
    this.epoch = reply.epoch;
    return reply;
  }
}

export function machine(id: string): JoinRequest {
  return {
    name: `host-${id}`,
    machine: id,
    bootId: 'boot1',
    address: '10.0.0.1',
    network: 'lan',
    agentVersion: '0.1.0',
    capabilities: ['process'],
    attributes: {},
    resources: { cpuMillis: 8000, memoryBytes: 2 ** 34, devices: [], portRange: [2000, 2009] },
  };
}

function fail(error: unknown): void {
  throw error;
}
