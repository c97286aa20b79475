/** Random workers, tokens, clusters and readiness. */
import * as fc from 'fast-check';
import { HEALTH_SEVERITIES } from '../../src/model/health.ts';
import { ROLE_NAMES } from '../../src/model/roles.ts';
import { TOKEN_KINDS } from '../../src/model/token.ts';
import { WORKER_STATES } from '../../src/model/worker.ts';
import {
  bytes,
  defined,
  device,
  map,
  ms,
  nullable,
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
