/** What goes wrong at providers in a seed: how often, for how long, and what others leave there. */
import { PROVIDER_FAULTS, type ProviderFault } from '../../../src/providers/fake/faults.ts';
import type { Cluster } from '../cluster.ts';
import type { World } from '../world.ts';
import type { RentedPool } from './pools.ts';
import type { Rented } from './rented.ts';

/** A seed has about every third fault, each with a rate of its own up to this. */
const MOST: Record<string, number> = { launch: 0.3, list: 0.3, machine: 0.25, destroy: 0.3 };
/** After this one a pool waits for a quarter of an hour: seldom, so that there is more to see. */
const RARELY: Partial<Record<ProviderFault, number>> = { 'launch: configuration refused': 0.1 };
const LONGEST_OUTAGE_MS = 60_000;

export function drawRates(world: World): Partial<Record<ProviderFault, number>> {
  const rates: Partial<Record<ProviderFault, number>> = {};
  for (const fault of PROVIDER_FAULTS) {
    const most = MOST[fault.slice(0, fault.indexOf(':'))] ?? 0.3;
    if (world.chance(0.35)) rates[fault] = world.random.next() * most * (RARELY[fault] ?? 1);
  }
  return rates;
}

export function scheduleProviderFaults(
  { world, coverage }: Cluster,
  rented: Rented,
  pools: readonly RentedPool[],
  overMs: number,
): void {
  const times = (most: number, run: (pool: RentedPool) => void): void => {
    const count = world.chance(0.5) ? world.between(1, most) : 0;
    for (let i = 0; i < count; i++) {
      world.after(world.between(0, overMs), () => run(world.pick(pools)));
    }
  };
  times(2, (pool) => {
    const account = rented.account(pool);
    account.reachable = false;
    coverage.saw('provider outage');
    world.note(pool.name, 'cannot be reached');
    world.after(world.between(1000, LONGEST_OUTAGE_MS), () => (account.reachable = true));
  });
  times(2, (pool) => {
    coverage.saw('orphan from elsewhere');
    rented.plantOrphan(pool);
  });
}
