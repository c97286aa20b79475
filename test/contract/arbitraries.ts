/** Random values of everything the contract carries, for the round-trip test. */
import * as fc from 'fast-check';
import { ATTEMPT_STATES, END_CAUSES } from '../../src/model/attempt.ts';
import { EVENT_KINDS } from '../../src/model/event.ts';
import { JOB_KINDS, JOB_STATES, PRIORITIES, type JobSpec } from '../../src/model/job.ts';
import type { TokenId } from '../../src/model/ids.ts';
import { DEVICE_KINDS } from '../../src/model/resources.ts';
import { TASK_STATES } from '../../src/model/task.ts';
import { SCOPES, TOKEN_KINDS } from '../../src/model/token.ts';
import { WORKER_STATES } from '../../src/model/worker.ts';
import type { Observation } from '../../src/protocol/agent.ts';
import type { LogQuery } from '../../src/protocol/coordinator.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const word = fc.string({
  minLength: 1,
  maxLength: 12,
  unit: fc.constantFrom('a', 'b', 'X', '0', '9', '_'),
});
const ms = fc.maxSafeNat();
const bytes = fc.maxSafeNat();
const small = fc.nat({ max: 2 ** 31 - 1 });
const exitCode = fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }));
const nullable = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> =>
  fc.option(value, { nil: null });
// A plain object cannot hold this key, in JSON or anywhere else.
const map = fc.dictionary(
  text.filter((key) => key !== '__proto__'),
  text,
  { maxKeys: 4, noNullPrototype: true },
);
const stream = fc.constantFrom('stdout' as const, 'stderr' as const);
const scopes = fc.uniqueArray(fc.constantFrom(...SCOPES));
const cursor = fc.option(fc.string({ maxLength: 20 }), { nil: undefined });

export const page = defined(fc.record({ cursor, limit: fc.integer({ min: 1, max: 500 }) }));
export const pageOf = <Item>(item: fc.Arbitrary<Item>) =>
  fc.record({ items: fc.array(item, { maxLength: 4 }), nextCursor: nullable(text) });

/** Leaves out keys that are undefined, as our types do. */
export function defined<Value extends object>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value> {
  return value.map(
    (all) =>
      Object.fromEntries(Object.entries(all).filter(([, each]) => each !== undefined)) as Value,
  );
}

export const principal = fc.record({
  token: text.map((id) => id as TokenId),
  tenant: text,
  user: text,
  scopes,
});

const device = fc.record({
  index: small,
  kind: fc.constantFrom(...DEVICE_KINDS),
  model: text,
  memoryBytes: bytes,
});

/** Within the limits of a submission: the server checks them. */
export const spec: fc.Arbitrary<JobSpec> = fc.record({
  name: text,
  command: fc.array(word, { minLength: 1, maxLength: 5 }),
  env: fc.dictionary(
    word.filter((key) => !/^\d/.test(key)),
    text,
    { maxKeys: 4, noNullPrototype: true },
  ),
  workdir: text,
  resources: fc.record({
    cpuMillis: fc.integer({ min: 1, max: 1_024_000 }),
    memoryBytes: bytes,
    device: nullable(
      fc.record({
        kind: fc.constantFrom(...DEVICE_KINDS),
        count: fc.constant(1),
        share: fc.integer({ min: 1, max: 1000 }),
        models: fc.array(text, { maxLength: 3 }),
        memoryBytes: bytes,
      }),
    ),
    ports: fc.integer({ min: 0, max: 64 }),
  }),
  shape: fc.oneof(
    fc.constant({ kind: 'single' as const }),
    fc.record({
      kind: fc.constant('array' as const),
      indices: fc.uniqueArray(fc.nat({ max: 1_000_000_000 }), { minLength: 1, maxLength: 5 }),
    }),
    fc.record({ kind: fc.constant('gang' as const), size: fc.integer({ min: 1, max: 1024 }) }),
  ),
  pool: text,
  priority: fc.constantFrom(...PRIORITIES),
  retries: fc.nat({ max: 100 }),
  maxInterruptions: fc.nat({ max: 10_000 }),
  timeLimitMs: fc.nat({ max: 86_400_000 }),
  startWithinMs: fc.nat({ max: 86_400_000 }),
  graceMs: fc.nat({ max: 600_000 }),
  attemptLeaseMs: fc.constantFrom(0, 60_000, 86_400_000),
  labels: fc.dictionary(word, text, { maxKeys: 4, noNullPrototype: true }),
});

export const job = defined(
  fc.record({
    id: text,
    name: text,
    state: fc.constantFrom(...JOB_STATES),
    reason: text,
    kind: fc.constantFrom(...JOB_KINDS),
    cluster: text,
    tenant: text,
    owner: text,
    submittingPrincipal: text,
    priority: fc.constantFrom(...PRIORITIES),
    pool: text,
    createdAtMs: ms,
    startedAtMs: nullable(ms),
    endedAtMs: nullable(ms),
    cancelRequestedAtMs: nullable(ms),
    exitCode,
    tasks: fc.record({
      total: small,
      pending: small,
      running: small,
      succeeded: small,
      failed: small,
      cancelled: small,
      unschedulable: small,
    }),
    spec: fc.option(spec, { nil: undefined }),
  }),
);

export const task = fc.record({
  id: text,
  job: text,
  index: small,
  state: fc.constantFrom(...TASK_STATES),
  reason: text,
  attempts: small,
  failures: small,
  interruptions: small,
  exitCode,
  worker: nullable(text),
  createdAtMs: ms,
  startedAtMs: nullable(ms),
  endedAtMs: nullable(ms),
});

export const attempt = fc.record({
  uid: text,
  task: text,
  n: small,
  round: small,
  worker: text,
  state: fc.constantFrom(...ATTEMPT_STATES),
  cause: nullable(fc.constantFrom(...END_CAUSES)),
  exitCode,
  signal: nullable(text),
  message: text,
  assignedAtMs: ms,
  startedAtMs: nullable(ms),
  endedAtMs: nullable(ms),
});

const fact = fc.oneof(text, fc.double({ noNaN: true }), fc.boolean(), fc.constant(null));
export const event = fc.record({
  epoch: ms,
  seq: ms,
  atMs: ms,
  kind: fc.constantFrom(...EVENT_KINDS),
  job: nullable(text),
  task: nullable(text),
  attempt: nullable(text),
  worker: nullable(text),
  data: fc.dictionary(word, fact, { maxKeys: 5, noNullPrototype: true }),
});

export const queueEntry = fc.record({
  job: text,
  name: text,
  owner: text,
  priority: fc.constantFrom(...PRIORITIES),
  position: small,
  pendingTasks: small,
  createdAtMs: ms,
  reason: text,
});

const logFields = { seq: ms, task: text, index: small, attempt: small, stream, offset: bytes };
export const logPage = fc.record({
  records: fc.array(
    fc.oneof(
      fc.record({ ...logFields, atMs: ms, text }),
      fc.record({
        ...logFields,
        atMs: ms,
        base64: fc.uint8Array({ maxLength: 40 }).map((raw) => Buffer.from(raw).toString('base64')),
      }),
    ),
    { maxLength: 5 },
  ),
  next: ms,
  complete: fc.boolean(),
});

export const logQuery: fc.Arbitrary<LogQuery> = defined(
  fc.record({
    after: ms,
    task: fc.option(small, { nil: undefined }),
    sinceMs: fc.option(ms, { nil: undefined }),
    tailLines: fc.option(small, { nil: undefined }),
    waitMs: fc.nat({ max: 20_000 }),
  }) as fc.Arbitrary<LogQuery>,
);

export const listJobsQuery = defined(
  fc.record({
    cursor,
    limit: fc.integer({ min: 1, max: 500 }),
    state: fc.option(fc.constantFrom(...JOB_STATES), { nil: undefined }),
    name: fc.option(text, { nil: undefined }),
    owner: fc.option(text, { nil: undefined }),
  }),
);

const capacity = fc.record({ cpuMillis: bytes, memoryBytes: bytes, devices: small });
export const worker = fc.record({
  id: text,
  name: text,
  pool: text,
  state: fc.constantFrom(...WORKER_STATES),
  draining: fc.boolean(),
  address: text,
  network: text,
  attributes: map,
  agentVersion: text,
  joinedAtMs: ms,
  lastSeenAtMs: nullable(ms),
  attempts: small,
  total: capacity,
  free: capacity,
  devices: fc.array(device, { maxLength: 3 }),
});

export const token = defined(
  fc.record({
    id: text,
    kind: fc.constantFrom(...TOKEN_KINDS),
    name: text,
    tenant: text,
    user: text,
    scopes,
    pool: text,
    maxLiveWorkers: small,
    createdAtMs: ms,
    expiresAtMs: nullable(ms),
    revokedAtMs: nullable(ms),
    secret: fc.option(text, { nil: undefined }),
  }),
);

export const createToken = defined(
  fc.record({
    kind: fc.constantFrom(...TOKEN_KINDS),
    name: text,
    user: fc.option(word, { nil: undefined }),
    scopes,
    pool: text,
    maxLiveWorkers: fc.nat({ max: 100_000 }),
    expiresInMs: fc.option(fc.integer({ min: 1000, max: 3650 * 86_400_000 }), { nil: undefined }),
  }),
);

export const cluster = fc.record({
  id: text,
  name: text,
  version: text,
  epoch: ms,
  startedAtMs: ms,
  store: fc.constantFrom('sqlite' as const, 'postgres' as const),
  workers: fc.record({ online: small, suspect: small, draining: small }),
  tasks: fc.record({ pending: small, assigned: small, running: small }),
  attemptLeaseMs: ms,
});

export const readiness = fc.record({
  ready: fc.boolean(),
  reasons: fc.array(text, { maxLength: 3 }),
  loops: fc.array(
    fc.record({
      name: text,
      periodMs: ms,
      lastStartedAtMs: nullable(ms),
      lastFinishedAtMs: nullable(ms),
      failures: bytes,
      lastError: nullable(text),
      healthy: fc.boolean(),
    }),
    { maxLength: 3 },
  ),
});

const timers = fc.record({
  workerLeaseMs: ms,
  attemptLeaseMs: ms,
  killMarginMs: ms,
  longPollMs: ms,
});

const port = fc.integer({ min: 1, max: 65535 });
export const joinRequest = fc.record({
  name: word,
  machine: word,
  bootId: text,
  address: text,
  network: text,
  agentVersion: text,
  capabilities: fc.array(text, { maxLength: 3 }),
  attributes: map,
  resources: fc.record({
    cpuMillis: bytes,
    memoryBytes: bytes,
    devices: fc.array(device, { maxLength: 3 }),
    portRange: fc.tuple(port, port),
  }),
});

export const joinReply = fc.record({
  worker: text,
  token: text,
  clusterId: text,
  epoch: ms,
  timers,
});

/** Null exit codes and signals are left out here: absent says the same on the wire. */
const observation: fc.Arbitrary<Observation> = defined(
  fc.record({
    uid: text,
    state: fc.constantFrom('STARTING', 'RUNNING', 'STOPPING', 'ENDED'),
    cause: fc.option(fc.constantFrom(...END_CAUSES), { nil: undefined }),
    exitCode: fc.option(fc.integer({ min: -255, max: 255 }), { nil: undefined }),
    signal: fc.option(text, { nil: undefined }),
    message: fc.option(text, { nil: undefined }),
    hostFault: fc.option(fc.boolean(), { nil: undefined }),
    stdoutBytes: fc.option(bytes, { nil: undefined }),
    stderrBytes: fc.option(bytes, { nil: undefined }),
  }) as fc.Arbitrary<Observation>,
);

export const syncRequest = fc.record({
  worker: text,
  bootId: text,
  start: ms,
  seq: ms,
  epoch: ms,
  observed: fc.array(observation, { maxLength: 4 }),
  wait: fc.boolean(),
});

const order = fc.record({
  uid: text,
  job: text,
  task: text,
  index: small,
  n: small,
  command: fc.array(text, { maxLength: 4 }),
  env: map,
  workdir: text,
  cpuMillis: bytes,
  memoryBytes: bytes,
  devices: fc.array(fc.record({ index: small, kind: text }), { maxLength: 3 }),
  share: small,
  ports: fc.array(port, { maxLength: 3 }),
  graceMs: ms,
  attemptLeaseMs: ms,
});

export const syncReply = fc.record({
  clusterId: text,
  epoch: ms,
  generation: ms,
  desired: fc.array(order, { maxLength: 3 }),
  stop: fc.array(
    fc.record({
      uid: text,
      cause: fc.constantFrom(
        'cancelled' as const,
        'timed-out' as const,
        'preempted' as const,
        'gang-failed' as const,
        'lost' as const,
      ),
      graceMs: ms,
    }),
    { maxLength: 3 },
  ),
  acknowledged: fc.array(text, { maxLength: 3 }),
  tunnels: fc.array(fc.record({ gatewayUrl: text, ticket: text }), { maxLength: 2 }),
  timers,
});

export const chunks = fc.array(
  fc.record({
    uid: text,
    stream,
    offset: bytes,
    atMs: ms,
    bytes: fc.uint8Array({ maxLength: 64 }),
  }),
  { maxLength: 4 },
);
export const acks = fc.array(fc.record({ uid: text, stream, offset: bytes }), { maxLength: 4 });
export const tunnelTicket = fc.record({ ticketHash: text, worker: text, attempt: text });
export const submitReply = fc.record({ ids: fc.array(text), replayed: fc.boolean() });
export { text };
