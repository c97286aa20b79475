/** Random values of everything the contract carries, for the round-trip test. */
import * as fc from 'fast-check';
import { ATTEMPT_STATES, END_CAUSES } from '../../src/model/attempt.ts';
import { EVENT_KINDS } from '../../src/model/event.ts';
import { AFTER_CONDITIONS, JOB_KINDS, JOB_STATES, PRIORITIES } from '../../src/model/job.ts';
import type { JobSpec } from '../../src/model/job.ts';
import type { JobId, TokenId } from '../../src/model/ids.ts';
import { ARRANGEMENTS, TRUSTS } from '../../src/model/placement.ts';
import { DEVICE_KINDS } from '../../src/model/resources.ts';
import { TASK_STATES } from '../../src/model/task.ts';
import { SCOPES } from '../../src/model/token.ts';
import { jobParts } from './partArbitraries.ts';
import type { LogQuery } from '../../src/protocol/coordinator.ts';

export const text = fc.string({ unit: 'grapheme', maxLength: 20 });
export const word = fc.string({
  minLength: 1,
  maxLength: 12,
  unit: fc.constantFrom('a', 'b', 'X', '0', '9', '_'),
});
export const ms = fc.maxSafeNat();
export const bytes = fc.maxSafeNat();
export const small = fc.nat({ max: 2 ** 31 - 1 });
const exitCode = fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }));
export const nullable = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> =>
  fc.option(value, { nil: null });
// A plain object cannot hold this key, in JSON or anywhere else.
export const map = fc.dictionary(
  text.filter((key) => key !== '__proto__'),
  text,
  { maxKeys: 4, noNullPrototype: true },
);
export const stream = fc.constantFrom('stdout' as const, 'stderr' as const);
export const scopes = fc.uniqueArray(fc.constantFrom(...SCOPES));
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

export const principal = defined(
  fc.record({
    token: text.map((id) => id as TokenId),
    tenant: text,
    user: text,
    scopes,
    job: fc.option(
      text.map((id) => id as JobId),
      { nil: undefined },
    ),
    identity: fc.option(fc.record({ issuer: text, subject: text }), { nil: undefined }),
  }),
);

export const device = fc.record({
  index: small,
  kind: fc.constantFrom(...DEVICE_KINDS),
  model: text,
  memoryBytes: bytes,
});

const plainSpec: fc.Arbitrary<JobSpec> = fc.record({
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
      limit: fc.nat({ max: 10_000 }),
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
  maxCostMicros: fc.nat(),
  after: fc.array(
    fc.record({
      job: word.map((id) => id as JobId),
      when: fc.constantFrom(...AFTER_CONDITIONS),
    }),
    { maxLength: 2 },
  ),
  placement: fc.record({
    constraints: fc.array(
      fc.record({
        attribute: word,
        operator: fc.constantFrom('EQ' as const, 'NE' as const, 'IN' as const),
        values: fc.array(word, { minLength: 1, maxLength: 1 }),
        preferred: fc.boolean(),
      }),
      { maxLength: 2 },
    ),
    arrangement: fc.constantFrom(...ARRANGEMENTS),
    exclusive: fc.boolean(),
    antiAffinity: word,
    locality: word,
    interruptible: fc.boolean(),
    trust: fc.constantFrom(...TRUSTS),
  }),
  labels: fc.dictionary(word, text, { maxKeys: 4, noNullPrototype: true }),
});

/** Within the limits of a submission: the server checks them. */
export const spec: fc.Arbitrary<JobSpec> = fc
  .tuple(plainSpec, defined(jobParts))
  .map(([plain, parts]) => ({ ...plain, ...parts }));

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
    parent: nullable(text),
    root: nullable(text),
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
  facts: map,
  result: nullable(text),
  resultBytes: nullable(bytes),
  priceMicros: bytes,
  chargedMicros: bytes,
});

export const checkpoint = fc.record({
  task: text,
  n: small,
  attempt: text,
  manifest: text,
  bytes,
  files: small,
  reason: text,
  createdAtMs: ms,
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
  hash: nullable(text),
});

export const accessRecord = fc.record({
  how: text,
  attempt: text,
  details: fc.dictionary(word, fact, { maxKeys: 5, noNullPrototype: true }),
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
    metrics: fc.option(fc.constant(true), { nil: undefined }),
  }) as fc.Arbitrary<LogQuery>,
);

export const listJobsQuery = defined(
  fc.record({
    cursor,
    limit: fc.integer({ min: 1, max: 500 }),
    state: fc.option(fc.constantFrom(...JOB_STATES), { nil: undefined }),
    name: fc.option(text, { nil: undefined }),
    owner: fc.option(text, { nil: undefined }),
    parent: fc.option(text, { nil: undefined }),
  }),
);

export const tunnelTicket = fc.record({ ticketHash: text, worker: text, attempt: text });
export const submitReply = fc.record({ ids: fc.array(text), replayed: fc.boolean() });
