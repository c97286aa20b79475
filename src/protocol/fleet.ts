/** REST schemas of workers, tokens and the cluster. */
import { z } from 'zod';
import { HEALTH_SEVERITIES } from '../model/health.ts';
import { DEVICE_KINDS } from '../model/resources.ts';
import { ROLE_NAMES } from '../model/roles.ts';
import { SCOPES, TOKEN_KINDS } from '../model/token.ts';
import { WORKER_STATES } from '../model/worker.ts';
import { tenantName, userName } from './tenants.ts';
import { clean } from './texts.ts';

const ms = z.number();

export const workerView = z
  .object({
    id: z.string(),
    name: z.string(),
    pool: z.string(),
    state: z.enum(WORKER_STATES),
    draining: z.boolean(),
    address: z.string(),
    network: z.string(),
    attributes: z.record(z.string(), z.string()),
    agentVersion: z.string(),
    joinedAtMs: ms,
    lastSeenAtMs: ms.nullable(),
    attempts: z.int(),
    total: z.object({ cpuMillis: z.int(), memoryBytes: z.int(), devices: z.int() }),
    free: z.object({ cpuMillis: z.int(), memoryBytes: z.int(), devices: z.int() }),
    devices: z.array(
      z.object({
        index: z.int(),
        kind: z.enum(DEVICE_KINDS),
        model: z.string(),
        memoryBytes: z.int(),
      }),
    ),
    /** The physical machine. */
    host: z.string(),
    /** Null: it came by itself. */
    instance: z.string().nullable(),
    /** When its machine ends; null: never, as far as anybody knows. */
    endsAtMs: ms.nullable(),
    /** What is wrong with the machine. */
    problems: z.array(
      z.object({
        check: z.string(),
        severity: z.enum(HEALTH_SEVERITIES),
        message: z.string(),
        device: z.int().optional(),
      }),
    ),
  })
  .meta({ id: 'Worker' });
export type WorkerView = z.infer<typeof workerView>;

export const createToken = z.strictObject({
  kind: z.enum(['user', 'join']).default('user'),
  name: clean(200).default(''),
  user: userName.optional(),
  /** Another tenant's than the caller's needs tenants:manage. */
  tenant: tenantName.optional(),
  /** Sets of scopes, beside those that are named. */
  roles: z.array(z.enum(ROLE_NAMES)).max(ROLE_NAMES.length).default([]),
  scopes: z.array(z.enum(SCOPES)).max(SCOPES.length).default([]),
  pool: clean(100).default('default'),
  maxLiveWorkers: z.int().min(0).max(100_000).default(0),
  expiresInMs: z
    .int()
    .min(1000)
    .max(3650 * 86_400_000)
    .optional(),
});
export type CreateToken = z.infer<typeof createToken>;

export const tokenView = z
  .object({
    id: z.string(),
    kind: z.enum(TOKEN_KINDS),
    name: z.string(),
    tenant: z.string(),
    user: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    pool: z.string(),
    maxLiveWorkers: z.int(),
    createdAtMs: ms,
    expiresAtMs: ms.nullable(),
    revokedAtMs: ms.nullable(),
    /** To within a minute. */
    lastUsedAtMs: ms.nullable(),
    /** Of a running job that may submit others: good until that attempt ends. */
    attempt: z.string().nullable(),
    /** Only in the answer that creates it. */
    secret: z.string().optional(),
  })
  .meta({ id: 'Token' });
export type TokenView = z.infer<typeof tokenView>;

export const clusterView = z.object({
  id: z.string(),
  name: z.string(),
  version: z.string(),
  epoch: z.number(),
  startedAtMs: ms,
  store: z.enum(['sqlite', 'postgres']),
  workers: z.object({ online: z.int(), suspect: z.int(), draining: z.int() }),
  tasks: z.object({ pending: z.int(), assigned: z.int(), running: z.int() }),
  attemptLeaseMs: z.int(),
});
export type ClusterView = z.infer<typeof clusterView>;

/** As a gateway tells it. */
export const clusterAnswer = clusterView
  .extend({
    insecure: z.boolean().describe('Tokens cross the network readable: `insecure` allows it'),
  })
  .meta({ id: 'Cluster' });
export type ClusterAnswer = z.infer<typeof clusterAnswer>;
