/** A pool as an operator configures it. */
import { z } from 'zod';

/** The largest worker a pool can bring: what asks for more is refused at once. */
const largestWorker = z.strictObject({
  cpus: z.number().min(0.001).max(1024),
  memoryBytes: z.int().min(0).default(0),
  gpus: z.int().min(0).max(1024).default(0),
  gpuModel: z.string().max(100).default(''),
  gpuMemoryBytes: z.int().min(0).default(0),
});

/** What a pool costs, brings and demands of the work its workers take. */
export const poolSettings = z.strictObject({
  largestWorker: largestWorker.optional(),
  pricePerDeviceHour: z.number().min(0).max(1_000_000).default(0),
  pricePerCpuHour: z.number().min(0).max(1_000_000).default(0),
  tenants: z.array(z.string().min(1).max(100)).default([]),
  interruptibleOnly: z.boolean().default(false),
  marketplace: z.boolean().default(false),
});
