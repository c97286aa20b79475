/** A pool as an operator configures it. */
import { z } from 'zod';
import { saladPool } from './saladSettings.ts';
import { duration, HOUR, MINUTE, period, SECOND } from './settingKinds.ts';
import { slurmPool } from './slurmSettings.ts';
import { sshPool } from './sshSettings.ts';

/**
 * The largest worker a pool can bring: what asks for more is refused at once. Of a pool with a
 * provider it is what one machine has, unless machines are sized for their job.
 */
const largestWorker = z.strictObject({
  cpus: z.number().min(0.001).max(1024),
  memoryBytes: z.int().min(0).default(0),
  gpus: z.int().min(0).max(1024).default(0),
  gpuModel: z.string().max(100).default(''),
  gpuMemoryBytes: z.int().min(0).default(0),
});

const money = z.number().min(0).max(1_000_000_000);

/** How machines come and go; only pools with a provider look at it. */
const scaling = {
  /** agents: a machine takes any work until it idles. job: each is sized for one job. */
  mode: z.enum(['agents', 'job']).default('agents'),
  min: z.int().min(0).max(10_000).default(0),
  max: z.int().min(0).max(10_000).default(1),
  /** Asked for and not yet there, at most. */
  maxPending: z.int().min(1).max(10_000).default(10),
  idleTimeoutMs: duration.default(10 * MINUTE),
  /** Between two launches, and after the first failure; failures in a row double it. */
  cooldownMs: duration.default(10 * SECOND),
  /** From its start at the provider's until its agent joins. */
  bootTimeoutMs: duration.default(30 * MINUTE),
  /** How often the provider is asked what it has. */
  pollMs: period.default(5 * SECOND),
  /** What the provider bills for one instance, and for how long at once. */
  pricePerInstanceHour: money.default(0),
  billingQuantumMs: duration.default(MINUTE),
  /** Of this pool's instances; 0: no limit. */
  spendPerHour: money.default(0),
  spendPerDay: money.default(0),
  spendPerMonth: money.default(0),
  /** A machine without contact for this long ends itself. */
  selfDestructAfterMs: duration.default(HOUR),
  /** What its machines have, for work that asks for it; they are told of it when they join. */
  attributes: z.record(z.string().min(1).max(63), z.string().max(256)).default({}),
  /** Its machines reach each other under this name; empty: they do not. */
  network: z.string().max(255).default(''),
  /** What a job without a time limit is taken to need where machines have an end. */
  assumedJobMs: duration.default(HOUR),
};

/** What a pool costs, brings and demands of the work its workers take. */
export const poolSettings = z
  .strictObject({
    largestWorker: largestWorker.optional(),
    pricePerDeviceHour: z.number().min(0).max(1_000_000).default(0),
    pricePerCpuHour: z.number().min(0).max(1_000_000).default(0),
    tenants: z.array(z.string().min(1).max(100)).default([]),
    interruptibleOnly: z.boolean().default(false),
    marketplace: z.boolean().default(false),
    ...scaling,
    /** At most one of these: where its machines come from. */
    slurm: slurmPool.optional(),
    ssh: sshPool.optional(),
    salad: saladPool.optional(),
  })
  .refine((pool) => PROVIDER_KINDS.filter((kind) => pool[kind]).length <= 1, {
    message: 'a pool has at most one provider',
  })
  .refine(({ min, max }) => min <= max, { message: 'min is above max' })
  .refine(({ min, mode }) => min === 0 || mode === 'agents', {
    message: 'min must be 0 in mode job: each machine is for a job',
  });
export type PoolSettings = z.output<typeof poolSettings>;

export const PROVIDER_KINDS = ['slurm', 'ssh', 'salad'] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** Undefined: agents join it by themselves. */
export function providerOf(pool: PoolSettings): ProviderKind | undefined {
  return PROVIDER_KINDS.find((kind) => pool[kind] !== undefined);
}
