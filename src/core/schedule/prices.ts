/** What places cost, by pool: so that what is left of a budget goes where it suffices. */
import type { PlacementRequest, PlannerWorker } from '../placement/request.ts';
import type { Price } from '../money.ts';
import { holdOf } from './quota.ts';

export class Prices {
  readonly #pools = new Map<string, Price>();

  /** All workers of a pool cost the same: the last one heard of tells. */
  set({ pool, deviceHourMicros, cpuHourMicros }: PlannerWorker): void {
    const known = this.#pools.get(pool);
    if (known?.deviceHourMicros === deviceHourMicros && known.cpuHourMicros === cpuHourMicros) {
      return;
    }
    this.#pools.set(pool, { deviceHourMicros, cpuHourMicros });
  }

  of(pool: string): Price | undefined {
    return this.#pools.get(pool);
  }

  /** Pools that the request may use, with what one task of it sets aside there. */
  holds(request: PlacementRequest): { pool: string; micros: number }[] {
    const holds: { pool: string; micros: number }[] = [];
    for (const [pool, price] of this.#pools) {
      if (request.pool !== '' && request.pool !== pool) continue;
      holds.push({ pool, micros: holdOf(request, price).micros });
    }
    return holds;
  }
}

/** The same request, in these pools only. */
export function within(request: PlacementRequest, pools: string[]): PlacementRequest {
  const only = { attribute: 'pool', operator: 'IN' as const, values: pools, preferred: false };
  return {
    ...request,
    key: `${request.key}|in ${JSON.stringify(pools)}`,
    placement: {
      ...request.placement,
      constraints: [...request.placement.constraints, only],
    },
  };
}
