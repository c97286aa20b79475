/** What is asked for, seen once for all classes that ask for the same of the same pools. */
import { antiAffinityGroup } from '../placement/holdings.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { Bin } from './bins.ts';
import { runAsOf, type CapacityPool } from './capacity.ts';
import { exactly, standingOf, type Standing } from './suits.ts';

export interface Ask {
  request: PlacementRequest;
  /** Of its anti-affinity; empty: none. */
  group: string;
  runAs: string;
  /** Thousandths of devices that one task takes. */
  deviceMillis: number;
  /** By the place of the pool among the pools. */
  standings: readonly Standing[];
  /** Places of the pools it may use, in the order in which they are asked. */
  order: readonly number[];
  /** Bins only fill up: none before this one has room for it. */
  firstBin: number;
  /** A gang found no room when there were so many bins. */
  gangMissedAt: number;
}

export class Asks {
  readonly #pools: readonly CapacityPool[];
  readonly #nowMs: number;
  readonly #asks = new Map<string, Ask>();
  /** Where no pool looks at who asks, what they ask for is one. */
  readonly #byTenant: boolean;
  readonly #byUser: boolean;

  constructor(pools: readonly CapacityPool[], nowMs: number) {
    this.#pools = pools;
    this.#nowMs = nowMs;
    this.#byTenant = pools.some(({ terms }) => terms.tenants.length > 0);
    this.#byUser = pools.some(
      ({ perUser, terms, instances }) =>
        perUser || terms.users.length > 0 || instances.some(({ runAs }) => runAs !== ''),
    );
  }

  of(request: PlacementRequest): Ask {
    const key = this.#keyOf(request);
    let ask = this.#asks.get(key);
    if (!ask) this.#asks.set(key, (ask = this.#make(request)));
    return ask;
  }

  /** Whether the worker is for such work, before looking at its room. */
  accepts(ask: Ask, bin: Bin): boolean {
    const standing = ask.standings[bin.pool] as Standing;
    if (standing.closed) return false;
    if (bin.runAs !== '' && bin.runAs !== ask.runAs) return false;
    return this.#nowMs + standing.neededMs <= bin.endsAtMs;
  }

  #make(request: PlacementRequest): Ask {
    const exact = exactly(request.resources);
    const standings = this.#pools.map((pool) => standingOf(pool, request, exact));
    const at = (place: number): Standing => standings[place] as Standing;
    const order = [...this.#pools.keys()]
      .filter((place) => request.pool === '' || this.#pools[place]?.name === request.pool)
      // The pools come ordered by name, which decides between equals.
      .toSorted((a, b) => {
        const preferred = at(b).preference - at(a).preference;
        return preferred || at(a).priceMicros - at(b).priceMicros || a - b;
      });
    const group = antiAffinityGroup(request);
    const runAs = runAsOf(request);
    const { device } = request.resources;
    const deviceMillis = device ? device.count * device.share : 0;
    const fresh = { firstBin: 0, gangMissedAt: -1 };
    return { request, group, runAs, deviceMillis, standings, order, ...fresh };
  }

  /** All that the answer depends on: neither its priority nor its limits of arrays. */
  #keyOf(request: PlacementRequest): string {
    const { tenant, user, resources, placement, pool, gangSize, neededMs } = request;
    const byTenant = this.#byUser || this.#byTenant || placement.antiAffinity !== '';
    const who = [byTenant ? tenant : '', this.#byUser ? user : ''];
    return JSON.stringify([who, pool, gangSize, neededMs, resources, placement]);
  }
}
