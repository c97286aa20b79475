/** A Coordinator in memory, for the tests of whatever stands in front of one. */
import { DroverError } from '../lib/errors.ts';
import type { TokenId } from '../model/ids.ts';
import type { JobSpec } from '../model/job.ts';
import { type Principal, type Scope, SCOPES } from '../model/token.ts';
import type { LogChunk, SyncReply, Timers } from '../protocol/agent.ts';
import type { Coordinator, Page, SubmitReply, SubmitRequest } from '../protocol/coordinator.ts';

import type { JobView, PageQuery } from '../protocol/jobs.ts';
import { fakeAccounts } from '../protocol/fakeAccounts.ts';
import { fakeFiles } from '../protocol/fakeFiles.ts';
import { fakeWorker, viewOf } from './fakeViews.ts';
import { fakePeople } from '../protocol/fakePeople.ts';
import { fakePools } from '../protocol/fakePools.ts';
import { fakeReceipt } from '../protocol/fakeReceipt.ts';
import { fakeWhy } from '../protocol/fakeWhy.ts';

export interface FakeCoordinator extends Coordinator {
  /** Holds every scope. */
  readonly adminToken: string;
  /** A new token with these scopes. */
  tokenWith(...scopes: Scope[]): string;
  /** How often each call was made. */
  readonly calls: Map<keyof Coordinator, number>;
  readonly jobs: Map<string, JobView>;
  readonly logs: LogChunk[];
}

export const WORKER_TOKEN = 'worker-token';
export const JOIN_TOKEN = 'join-token';

const TIMERS: Timers = {
  workerLeaseMs: 30_000,
  attemptLeaseMs: 300_000,
  killMarginMs: 15_000,
  longPollMs: 10_000,
};

/** `overrides` replace single calls, for failures and delays. */
export function createFakeCoordinator(overrides: Partial<Coordinator> = {}): FakeCoordinator {
  const calls = new Map<keyof Coordinator, number>();
  const tokens = new Map<string, Principal>();
  const jobs = new Map<string, JobView>();
  const logs: LogChunk[] = [];
  let minted = 0;
  const tokenWith = (...scopes: Scope[]): string => {
    const secret = `secret-${++minted}`;
    tokens.set(secret, { token: `t${minted}` as TokenId, tenant: 'main', user: 'ada', scopes });
    return secret;
  };
  const { planned: _planned, rows: _rows, ...accountCalls } = fakeAccounts();
  const { pools: _pools, instances: _instances, hosts: _hosts, ...poolCalls } = fakePools();
  const plain: Coordinator = {
    ...jobCalls(jobs),
    ...fleetCalls(tokens, tokenWith),
    ...agentCalls(logs),
    ...accountCalls,
    ...fakeFiles(),
    ...fakePeople(),
    ...poolCalls,
    ...overrides,
  };
  const counted = countCalls(plain, calls);
  return { ...counted, adminToken: tokenWith(...SCOPES), tokenWith, calls, jobs, logs };
}

function countCalls(plain: Coordinator, calls: Map<keyof Coordinator, number>): Coordinator {
  const counted = { ...plain } as Record<string, unknown>;
  for (const name of Object.keys(plain) as (keyof Coordinator)[]) {
    const call = plain[name] as (...values: unknown[]) => unknown;
    counted[name] = (...values: unknown[]) => {
      calls.set(name, (calls.get(name) ?? 0) + 1);
      return call(...values);
    };
  }
  return counted as unknown as Coordinator;
}

function jobCalls(jobs: Map<string, JobView>) {
  const keys = new Map<string, { bodyHash: string | null; ids: string[] }>();
  const waiting: (() => void)[] = [];
  const get = (id: string): JobView => {
    const job = jobs.get(id);
    if (!job) throw new DroverError('NOT_FOUND', `There is no job ${id}`);
    return job;
  };
  const accept = (who: Principal, request: SubmitRequest): SubmitReply => {
    const { idempotencyKey, bodyHash, specs } = request;
    const known = idempotencyKey === null ? undefined : keys.get(idempotencyKey);
    if (known && known.bodyHash !== bodyHash) {
      throw new DroverError('IDEMPOTENCY_MISMATCH', 'The key was used with another body');
    }
    if (known) return { ids: known.ids, replayed: true };
    const ids = specs.map((spec) => {
      const id = `j${jobs.size + 1}`;
      jobs.set(id, newJob(id, who, spec));
      return id;
    });
    if (idempotencyKey !== null) keys.set(idempotencyKey, { bodyHash, ids });
    return { ids, replayed: false };
  };
  /** Answers leave in batches, as a group commit would let them. */
  const committed = (): Promise<void> =>
    new Promise((resolve) => {
      if (waiting.push(resolve) > 1) return;
      setImmediate(() => {
        for (const go of waiting.splice(0)) go();
      });
    });
  return {
    async submit(who, request) {
      const reply = accept(who, request);
      await committed();
      return reply;
    },
    getJob: async (_who, id) => get(id),
    listJobs: async (_who, { cursor, limit, state, name }) => {
      const fits = [...jobs.values()].filter(
        (job) => (!state || job.state === state) && (!name || job.name === name),
      );
      return paged(fits.toReversed(), { cursor, limit });
    },
    async cancelJob(_who, id) {
      const job = get(id);
      if (job.state === 'PENDING') jobs.set(id, { ...job, state: 'CANCELLED', endedAtMs: 2 });
      return get(id);
    },
    async setPriority(_who, id, priority) {
      jobs.set(id, { ...get(id), priority });
      return get(id);
    },
    listTasks: async (_who, id, query) => (get(id), paged([], query)),
    listAttempts: async (_who, id, query) => (get(id), paged([], query)),
    listEvents: async (_who, id, query) => (get(id), paged([], query)),
    async waitJob(_who, id, waitMs) {
      if (get(id).endedAtMs === null) await new Promise((done) => setTimeout(done, waitMs));
      return get(id);
    },
    readLogs: async (_who, id, { after }) => (
      get(id),
      { records: [], next: after, complete: true }
    ),
    queue: async (_who, query) => paged([], query),
    why: async (_who, id) => fakeWhy(get(id)),
    receipt: async (_who, id) => fakeReceipt(get(id)),
  } satisfies Partial<Coordinator>;
}

function newJob(id: string, who: Principal, spec: JobSpec): JobView {
  return {
    id,
    name: spec.name,
    state: 'PENDING',
    reason: '',
    kind: 'batch',
    cluster: 'local',
    tenant: who.tenant,
    owner: who.user,
    submittingPrincipal: who.token,
    priority: spec.priority,
    pool: spec.pool,
    createdAtMs: 1,
    startedAtMs: null,
    endedAtMs: null,
    cancelRequestedAtMs: null,
    parent: null,
    root: null,
    exitCode: null,
    tasks: {
      total: 1,
      pending: 1,
      running: 0,
      succeeded: 0,
      failed: 0,
      cancelled: 0,
      unschedulable: 0,
    },
    spec,
  };
}

function paged<Item>(
  items: Item[],
  query: { cursor?: PageQuery['cursor'] | undefined; limit: number },
): Page<Item> {
  const start = Number(query.cursor ?? 0);
  if (!Number.isSafeInteger(start)) throw new DroverError('INVALID_ARGUMENT', 'A foreign cursor');
  const end = start + query.limit;
  return { items: items.slice(start, end), nextCursor: end < items.length ? String(end) : null };
}

function fleetCalls(tokens: Map<string, Principal>, tokenWith: FakeCoordinator['tokenWith']) {
  let worker = fakeWorker();
  return {
    authenticate: async (secret) => tokens.get(secret),
    cluster: async () => ({
      id: 'c1',
      name: 'local',
      version: '0.1.0',
      epoch: 1,
      startedAtMs: 1,
      store: 'sqlite',
      workers: { online: 1, suspect: 0, draining: 0 },
      tasks: { pending: 0, assigned: 0, running: 0 },
      attemptLeaseMs: TIMERS.attemptLeaseMs,
    }),
    listWorkers: async (_who, query) => paged([worker], query),
    async setDraining(_who, id, draining) {
      if (id !== worker.id) throw new DroverError('NOT_FOUND', `There is no worker ${id}`);
      return (worker = { ...worker, draining });
    },
    async revokeWorker(_who, id) {
      if (id !== worker.id) throw new DroverError('NOT_FOUND', `There is no worker ${id}`);
      return (worker = { ...worker, draining: true });
    },
    listTokens: async (_who, query) => paged([...tokens.values()].map(viewOf), query),
    async createToken(_who, { scopes }) {
      const secret = tokenWith(...scopes);
      return { ...viewOf(tokens.get(secret)!), secret };
    },
    async revokeToken(_who, id) {
      for (const [secret, principal] of tokens) {
        if (principal.token !== id) continue;
        tokens.delete(secret);
        return { ...viewOf(principal), revokedAtMs: 2 };
      }
      throw new DroverError('NOT_FOUND', `There is no token ${id}`);
    },
    readiness: async () => ({ ready: true, reasons: [], loops: [] }),
    metrics: async () =>
      '# HELP drover_up The controller runs.\n# TYPE drover_up gauge\ndrover_up 1\n',
  } satisfies Partial<Coordinator>;
}

function agentCalls(logs: LogChunk[]) {
  const reply: SyncReply = {
    clusterId: 'c1',
    epoch: 1,
    generation: 1,
    desired: [],
    stop: [],
    acknowledged: [],
    tunnels: [],
    timers: TIMERS,
  };
  return {
    async join(token) {
      check(token, JOIN_TOKEN);
      return { worker: 'w1', token: WORKER_TOKEN, clusterId: 'c1', epoch: 1, timers: TIMERS };
    },
    async sync(token) {
      check(token, WORKER_TOKEN);
      return reply;
    },
    async appendLogs(token, chunks) {
      check(token, WORKER_TOKEN);
      logs.push(...chunks);
      return chunks.map(({ uid, stream, offset, bytes }) => ({
        uid,
        stream,
        offset: offset + bytes.length,
      }));
    },
    registerGateway: async () => undefined,
    openTunnel: async (_who, task) => ({ ticketHash: 'hash', worker: 'w1', attempt: `${task}#1` }),
  } satisfies Partial<Coordinator>;
}

function check(given: string, wanted: string): void {
  if (given !== wanted) throw new DroverError('UNAUTHENTICATED', 'Not a token of an agent');
}
