/** A pool's settings as placement and admission see them. */
import type { PoolSettings } from '../../model/poolSettings.ts';
import type { PoolPolicy } from './admission.ts';

const MICROS = 1_000_000;

export function poolPolicy(name: string, pool: PoolSettings): PoolPolicy {
  const { tenants, interruptibleOnly, marketplace, largestWorker: most } = pool;
  return {
    name,
    terms: { tenants, users: [], interruptibleOnly, marketplace },
    deviceHourMicros: Math.round(pool.pricePerDeviceHour * MICROS),
    cpuHourMicros: Math.round(pool.pricePerCpuHour * MICROS),
    assumedJobMs: pool.assumedJobMs,
    largestWorker: most
      ? {
          cpuMillis: Math.round(most.cpus * 1000),
          memoryBytes: most.memoryBytes || Number.MAX_SAFE_INTEGER,
          devices: Array.from({ length: most.gpus }, (_, index) => ({
            index,
            kind: 'gpu' as const,
            model: most.gpuModel,
            memoryBytes: most.gpuMemoryBytes || Number.MAX_SAFE_INTEGER,
          })),
          portRange: [1, 65_535] as [number, number],
        }
      : null,
  };
}
