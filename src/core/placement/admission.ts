/** What can never run anywhere is refused at once, with the reason; everything else may wait. */
import type { JobSpec } from '../../model/job.ts';
import { OPEN_TERMS, type WorkerTerms } from '../../model/placement.ts';
import type { ResourceRequest, WorkerResources } from '../../model/resources.ts';
import { Capacity } from './capacity.ts';

/** A pool as configured. Without `largestWorker` it may bring anything. */
export interface PoolPolicy {
  name: string;
  largestWorker: WorkerResources | null;
  /** What its workers demand of the work they take. */
  terms: WorkerTerms;
  /** Price in millionths for an hour of one whole device, and of one core. */
  deviceHourMicros: number;
  cpuHourMicros: number;
  /** What a job without a time limit is taken to need where machines have an end. */
  assumedJobMs?: number;
}

/** A pool that brings anything, takes anything and costs nothing. */
export function freePool(name: string): PoolPolicy {
  const price = { deviceHourMicros: 0, cpuHourMicros: 0 };
  return { name, largestWorker: null, terms: OPEN_TERMS, ...price };
}

/**
 * Null when some pool could run it one day. `joined` are pools that have a join token, but no
 * limits.
 */
export function neverFits(
  spec: JobSpec,
  pools: readonly PoolPolicy[],
  joined: ReadonlySet<string>,
): string | null {
  const named = (name: string): boolean => spec.pool === '' || spec.pool === name;
  const limited = pools.filter((pool) => named(pool.name));
  const free = [...joined].filter((name) => !pools.some((pool) => pool.name === name));
  if (free.some(named)) return null;
  if (limited.length === 0) {
    const known = [...pools.map((pool) => pool.name), ...free].join(', ');
    return `there is no pool "${spec.pool}"; the pools are: ${known}`;
  }
  const short: string[] = [];
  for (const { name, largestWorker } of limited) {
    if (!largestWorker) return null;
    const fit = new Capacity(largestWorker).fit(relaxed(spec.resources, largestWorker));
    if (fit.fits) return null;
    short.push(`pool ${name}: its largest worker has too few ${fit.short}`);
  }
  return short.join('; ');
}

/** A pool that does not say which model it has may have any. */
function relaxed(request: ResourceRequest, largest: WorkerResources): ResourceRequest {
  const anyModel = largest.devices.some((device) => device.model === '');
  if (!request.device || !anyModel) return request;
  return { ...request, device: { ...request.device, models: [] } };
}
