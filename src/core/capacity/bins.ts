/** Workers that are expected, and what of the demand has been put on each. */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, InstanceId, WorkerId } from '../../model/ids.ts';
import type { WorkerResources } from '../../model/resources.ts';
import { Capacity, claimOf, WHOLE_DEVICE } from '../placement/capacity.ts';
import type { Ask } from './asks.ts';

/** One worker of an instance that comes, idles, or is to be launched. */
export class Bin {
  /** Place of its pool among the pools. */
  readonly pool: number;
  /** Null: it is to be launched. */
  readonly instance: InstanceId | null;
  readonly runAs: string;
  readonly endsAtMs: number;
  /** Since when it has been there with nothing to do; null: it is not there yet. */
  readonly idleSinceMs: number | null;
  readonly #capacity: Capacity;
  /** Thousandths of all its devices together: a quick look that is right when it says no. */
  #deviceMillisFree: number;
  #held = 0;
  #exclusive = false;
  #groups: Set<string> | null = null;

  constructor(
    pool: number,
    resources: WorkerResources,
    from: {
      instance?: InstanceId;
      runAs: string;
      endsAtMs?: number | null;
      idleSinceMs?: number | null;
    },
  ) {
    this.pool = pool;
    this.instance = from.instance ?? null;
    this.runAs = from.runAs;
    this.endsAtMs = from.endsAtMs ?? Number.POSITIVE_INFINITY;
    this.idleSinceMs = from.idleSinceMs ?? null;
    this.#capacity = new Capacity(resources);
    this.#deviceMillisFree = resources.devices.length * WHOLE_DEVICE;
  }

  get isWanted(): boolean {
    return this.#held > 0;
  }

  /** Null: there is no room for one. */
  put({ request, group, deviceMillis }: Ask): Claim | null {
    const { resources, placement } = request;
    const capacity = this.#capacity;
    if (resources.cpuMillis > capacity.cpuFree) return null;
    if (deviceMillis > this.#deviceMillisFree) return null;
    if (this.#exclusive || (placement.exclusive && this.#held > 0)) return null;
    if (group !== '' && this.#groups?.has(group)) return null;
    const fit = capacity.fit(resources);
    if (!fit.fits) return null;
    const claim = claimOf('' as AttemptUid, '' as WorkerId, resources, fit);
    capacity.take(claim);
    this.#deviceMillisFree -= deviceMillis;
    this.#held++;
    if (placement.exclusive) this.#exclusive = true;
    if (group !== '') (this.#groups ??= new Set()).add(group);
    return claim;
  }

  takeBack({ request, group, deviceMillis }: Ask, claim: Claim): void {
    this.#capacity.give(claim);
    this.#deviceMillisFree += deviceMillis;
    this.#held--;
    if (request.placement.exclusive) this.#exclusive = false;
    if (group !== '') this.#groups?.delete(group);
  }
}

/** One task on one worker. */
export interface Put {
  bin: Bin;
  claim: Claim;
}

export function takeBack(ask: Ask, puts: readonly Put[]): void {
  for (const { bin, claim } of puts) bin.takeBack(ask, claim);
}
