/** REST schemas of pools, instances and hosts, and the calls that tell of them. */
import { z } from 'zod';
import { HOST_VERDICTS } from '../model/host.ts';
import { FAILURE_CLASSES, INSTANCE_STATES } from '../model/instance.ts';
import type { Principal } from '../model/token.ts';
import type { Page } from './coordinator.ts';
import { pageQuery } from './jobs.ts';
import { clean } from './texts.ts';

const ms = z.number();
const micros = z.int();

const otherWork = z.object({
  handle: z.string(),
  name: z.string(),
  user: z.string(),
  state: z.string(),
  reason: z.string(),
  where: z.string(),
});

export const poolView = z
  .object({
    name: z.string(),
    /** Where its machines come from; empty: agents join it by themselves. */
    provider: z.string(),
    mode: z.enum(['agents', 'job']),
    min: z.int(),
    max: z.int(),
    workers: z.int(),
    /** Instances: asked for and not yet there, at work, being given back. */
    coming: z.int(),
    joined: z.int(),
    leaving: z.int(),
    /** Why nothing is launched just now, or was not; empty: nothing stands in the way. */
    error: z.string(),
    /** Until when it holds back. */
    notBeforeMs: ms.nullable(),
    /** When the provider last answered, and what it said since; empty: it answers. */
    listedAtMs: ms.nullable(),
    listError: z.string(),
    /** From the provider, for a person: drift, a maintenance window. */
    notice: z.string(),
    /** What an hour of a device, of a core and of an instance costs. */
    deviceHourMicros: micros,
    cpuHourMicros: micros,
    instanceHourMicros: micros,
    /** Spent on its instances, and the limits of that; a limit of 0 is none. */
    spent: z.object({ hour: micros, day: micros, month: micros, total: micros }),
    spendLimits: z.object({ hour: micros, day: micros, month: micros }),
    /** Work at the same place that is not ours, where the provider shows it. */
    others: z.array(otherWork),
  })
  .meta({ id: 'Pool' });
export type PoolView = z.infer<typeof poolView>;

export const instanceView = z
  .object({
    id: z.string(),
    pool: z.string(),
    provider: z.string(),
    state: z.enum(INSTANCE_STATES),
    failure: z.enum(FAILURE_CLASSES).nullable(),
    /** What it waits for, or why it ended. */
    reason: z.string(),
    /** What the provider calls it, and the machine it is on. */
    handle: z.string(),
    host: z.string(),
    /** How many workers it brings; those that have joined. */
    size: z.int(),
    workers: z.array(z.string()),
    /** Of the caller's tenant, unless the caller manages the fleet. */
    tasks: z.array(z.string()),
    runAs: z.string(),
    priceHourMicros: micros,
    spentMicros: micros,
    startsAtMs: ms.nullable(),
    endsAtMs: ms.nullable(),
    restarts: z.int(),
    createdAtMs: ms,
    requestedAtMs: ms.nullable(),
    runningAtMs: ms.nullable(),
    joinedAtMs: ms.nullable(),
    destroyAtMs: ms.nullable(),
    endedAtMs: ms.nullable(),
    /** What it was launched with; only when one is asked for by itself. */
    script: z.string().optional(),
  })
  .meta({ id: 'Instance' });
export type InstanceView = z.infer<typeof instanceView>;

export const hostView = z
  .object({
    id: z.string(),
    pool: z.string(),
    name: z.string(),
    verdict: z.enum(HOST_VERDICTS),
    /** Why nothing is started there; empty: nothing speaks against it. */
    avoided: z.string(),
    penalty: z.number(),
    faults: z.int(),
    good: z.int(),
    evidence: z.string(),
    lastFaultAtMs: ms.nullable(),
    lastSeenAtMs: ms,
    workers: z.int(),
  })
  .meta({ id: 'Host' });
export type HostView = z.infer<typeof hostView>;

export const HOST_WORDS = ['blocked', 'allowed', 'clear'] as const;
export const hostWord = z.strictObject({ host: clean(400).min(1), word: z.enum(HOST_WORDS) });
export type HostWord = z.infer<typeof hostWord>;

export const instanceQuery = pageQuery.extend({
  pool: clean(100).default('').describe('Only of this pool; left out: of all'),
  ended: z
    .stringbool()
    .or(z.boolean())
    .default(false)
    .describe('Those that have ended, from the newest on, instead of those that have not'),
});
export type InstanceQuery = z.infer<typeof instanceQuery>;

export interface PoolCalls {
  readonly listPools: (who: Principal) => Promise<PoolView[]>;
  /** Asks the pool's provider now, and tells what came of it. */
  readonly lookAtPool: (who: Principal, pool: string) => Promise<PoolView>;
  readonly listInstances: (who: Principal, query: InstanceQuery) => Promise<Page<InstanceView>>;
  readonly getInstance: (who: Principal, id: string) => Promise<InstanceView>;
  /** It is given back, whatever runs on it. */
  readonly destroyInstance: (who: Principal, id: string) => Promise<InstanceView>;
  readonly listHosts: (who: Principal) => Promise<HostView[]>;
  readonly setHost: (who: Principal, word: HostWord) => Promise<HostView>;
}
