/** The fake Coordinator's tokens and workers. */
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import type { TokenKind } from '../model/token.ts';
import type { JoinReply, JoinRequest, SyncReply, Timers, TunnelOrder } from './agent.ts';
import type { ClusterView, CreateToken, TokenView, WorkerView } from './fleet.ts';

interface FakeToken {
  secret: string;
  view: TokenView;
}

interface FakeWorker {
  secret: string;
  machine: string;
  view: WorkerView;
  tunnels: TunnelOrder[];
}

const CLUSTER = 'cfake';
const EPOCH = 1;
const TIMERS: Timers = {
  workerLeaseMs: 30_000,
  attemptLeaseMs: 300_000,
  killMarginMs: 15_000,
  longPollMs: 200,
};

export class FakeFleet {
  readonly tokens: FakeToken[] = [];
  readonly workers = new Map<string, FakeWorker>();
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #startedAtMs: number;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    this.#startedAtMs = clock.now();
  }

  setDraining(worker: string, draining: boolean): WorkerView {
    const found = this.workers.get(worker);
    if (!found) throw new DroverError('NOT_FOUND', `there is no worker ${worker}`);
    found.view.draining = draining;
    return { ...found.view };
  }

  addToken(tenant: string, by: string, kind: TokenKind, wanted: Partial<CreateToken>): FakeToken {
    const now = this.#clock.now();
    const expiresIn = wanted.expiresInMs;
    const view: TokenView = {
      id: `t${this.tokens.length + 1}`,
      kind,
      name: wanted.name ?? '',
      tenant,
      user: wanted.user ?? by,
      scopes: wanted.scopes ?? [],
      pool: wanted.pool ?? 'default',
      maxLiveWorkers: wanted.maxLiveWorkers ?? 0,
      createdAtMs: now,
      expiresAtMs: expiresIn === undefined ? null : now + expiresIn,
      revokedAtMs: null,
      lastUsedAtMs: null,
      attempt: null,
    };
    const token = { secret: `fake_${this.#random.hex(16)}`, view };
    this.tokens.push(token);
    return token;
  }

  tokenBySecret(secret: string, kind: TokenKind): FakeToken | undefined {
    const now = this.#clock.now();
    return this.tokens.find(
      (token) =>
        token.secret === secret &&
        token.view.kind === kind &&
        token.view.revokedAtMs === null &&
        (token.view.expiresAtMs ?? Infinity) > now,
    );
  }

  join(joinToken: string, request: JoinRequest): JoinReply {
    const token = this.tokenBySecret(joinToken, 'join');
    if (!token) throw new DroverError('UNAUTHENTICATED', 'the join token is not valid');
    for (const [id, worker] of this.workers) {
      if (worker.machine === request.machine) this.workers.delete(id);
    }
    const { cpuMillis, memoryBytes, devices } = request.resources;
    const capacity = { cpuMillis, memoryBytes, devices: devices.length };
    const now = this.#clock.now();
    const id = `w${this.#random.hex(4)}`;
    const secret = `fake_${this.#random.hex(16)}`;
    const view: WorkerView = {
      id,
      name: request.name,
      pool: token.view.pool,
      state: 'ONLINE',
      draining: false,
      address: request.address,
      network: request.network,
      attributes: request.attributes,
      agentVersion: request.agentVersion,
      joinedAtMs: now,
      lastSeenAtMs: now,
      host: 'node',
      instance: null,
      endsAtMs: null,
      problems: [],
      attempts: 0,
      total: capacity,
      free: capacity,
      devices,
    };
    this.workers.set(id, { secret, machine: request.machine, view, tunnels: [] });
    return { worker: id, token: secret, clusterId: CLUSTER, epoch: EPOCH, timers: TIMERS };
  }

  workerByToken(secret: string): FakeWorker {
    for (const worker of this.workers.values()) if (worker.secret === secret) return worker;
    throw new DroverError('UNAUTHENTICATED', 'the worker token is not valid', {
      hint: 'Join again.',
    });
  }

  emptyReply(generation: number): SyncReply {
    return {
      clusterId: CLUSTER,
      epoch: EPOCH,
      generation,
      desired: [],
      stop: [],
      acknowledged: [],
      tunnels: [],
      timers: TIMERS,
    };
  }

  cluster(tasks: ClusterView['tasks']): ClusterView {
    const views = [...this.workers.values()].map(({ view }) => view);
    return {
      id: CLUSTER,
      name: 'fake',
      version: '0.0.0',
      epoch: EPOCH,
      startedAtMs: this.#startedAtMs,
      store: 'sqlite',
      workers: {
        online: views.length,
        suspect: 0,
        draining: views.filter(({ draining }) => draining).length,
      },
      tasks,
      attemptLeaseMs: TIMERS.attemptLeaseMs,
    };
  }
}
