/** Random workers, tokens, clusters and readiness. */
import * as fc from 'fast-check';
import { HEALTH_SEVERITIES } from '../../src/model/health.ts';
import { HOST_VERDICTS } from '../../src/model/host.ts';
import { FAILURE_CLASSES, INSTANCE_STATES } from '../../src/model/instance.ts';
import { ROLE_NAMES } from '../../src/model/roles.ts';
import { TOKEN_KINDS } from '../../src/model/token.ts';
import { WORKER_STATES } from '../../src/model/worker.ts';
import { HOST_WORDS } from '../../src/protocol/pools.ts';
import {
  bytes,
  defined,
  device,
  map,
  ms,
  nullable,
  page,
  scopes,
  small,
  text,
  word,
} from './arbitraries.ts';

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
  host: text,
  instance: nullable(text),
  endsAtMs: nullable(ms),
  problems: fc.array(
    defined(
      fc.record({
        check: text,
        severity: fc.constantFrom(...HEALTH_SEVERITIES),
        message: text,
        device: fc.option(small, { nil: undefined }),
      }),
    ),
    { maxLength: 2 },
  ),
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
    lastUsedAtMs: nullable(ms),
    attempt: nullable(text),
    secret: fc.option(text, { nil: undefined }),
  }),
);

export const createToken = defined(
  fc.record({
    kind: fc.constantFrom('user' as const, 'join' as const),
    name: text,
    user: fc.option(word, { nil: undefined }),
    scopes,
    pool: text,
    roles: fc.uniqueArray(fc.constantFrom(...ROLE_NAMES)),
    tenant: fc.option(word, { nil: undefined }),
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

export const tenant = fc.record({
  name: text,
  suspended: fc.boolean(),
  note: text,
  createdAtMs: nullable(ms),
  users: small,
  liveJobs: small,
});

export const user = fc.record({
  tenant: text,
  name: text,
  roles: fc.array(text, { maxLength: 3 }),
  leftAtMs: nullable(ms),
  tokens: small,
  liveJobs: small,
});

export const identity = fc.record({
  issuer: text,
  subject: text,
  tenant: text,
  user: text,
  roles: fc.array(text, { maxLength: 3 }),
  expiresAtMs: ms,
});

export const policy = fc.record({ text, loadedAtMs: nullable(ms), problem: nullable(text) });

const money = fc.record({ hour: bytes, day: bytes, month: bytes });
export const pool = fc.record({
  ...{ name: text, provider: text, mode: fc.constantFrom('agents' as const, 'job' as const) },
  ...{ min: small, max: small, workers: small, coming: small, joined: small, leaving: small },
  ...{ error: text, notBeforeMs: nullable(ms), listedAtMs: nullable(ms), listError: text },
  ...{ notice: text, deviceHourMicros: bytes, cpuHourMicros: bytes, instanceHourMicros: bytes },
  spent: fc.record({ hour: bytes, day: bytes, month: bytes, total: bytes }),
  spendLimits: money,
  others: fc.array(
    fc.record({
      ...{ handle: text, name: text, user: text, state: text, reason: text, where: text },
    }),
    { maxLength: 2 },
  ),
});

export const instance = defined(
  fc.record({
    ...{ id: text, pool: text, provider: text, state: fc.constantFrom(...INSTANCE_STATES) },
    failure: nullable(fc.constantFrom(...FAILURE_CLASSES)),
    ...{ reason: text, handle: text, host: text, size: small, runAs: text, restarts: small },
    workers: fc.array(text, { maxLength: 2 }),
    tasks: fc.array(text, { maxLength: 2 }),
    ...{ priceHourMicros: bytes, spentMicros: bytes, createdAtMs: ms },
    ...{ startsAtMs: nullable(ms), endsAtMs: nullable(ms), requestedAtMs: nullable(ms) },
    ...{ runningAtMs: nullable(ms), joinedAtMs: nullable(ms), destroyAtMs: nullable(ms) },
    endedAtMs: nullable(ms),
    script: fc.option(text, { nil: undefined }),
  }),
);

export const host = fc.record({
  ...{ id: text, pool: text, name: text, verdict: fc.constantFrom(...HOST_VERDICTS) },
  ...{ avoided: text, penalty: fc.constantFrom(0, 0.5, 1.25), faults: small, good: small },
  ...{ evidence: text, lastFaultAtMs: nullable(ms), lastSeenAtMs: ms, workers: small },
});

export const hostWord = fc.record({ host: word, word: fc.constantFrom(...HOST_WORDS) });

export const instanceQuery = page.chain((one) =>
  fc.record({ pool: word, ended: fc.boolean() }).map((more) => ({ ...one, ...more })),
);
