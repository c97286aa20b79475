/** One worker of the fleet: what it is, what is held on it, and the state that puts it in. */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid } from '../../model/ids.ts';
import { Capacity } from './capacity.ts';
import type { Holdings } from './holdings.ts';
import type { Kind } from './kinds.ts';
import type { PlannerWorker } from './request.ts';
import type { WorkerState } from './states.ts';

export interface FleetWorker {
  info: PlannerWorker;
  capacity: Capacity;
  claims: Map<AttemptUid, Claim>;
}

export class Member implements FleetWorker {
  info: PlannerWorker;
  kind: Kind;
  capacity: Capacity;
  readonly holdings: Holdings;
  state: WorkerState | null = null;
  /** Place among the members of its state. */
  at = 0;

  constructor(info: PlannerWorker, kind: Kind, holdings: Holdings) {
    this.info = info;
    this.kind = kind;
    this.holdings = holdings;
    this.capacity = this.#count(info);
  }

  get claims(): Map<AttemptUid, Claim> {
    return this.holdings.claims;
  }

  change(info: PlannerWorker, kind: Kind): void {
    const same = JSON.stringify(info.resources) === JSON.stringify(this.info.resources);
    this.info = info;
    this.kind = kind;
    // Else the same ports would be given again first.
    if (!same) this.capacity = this.#count(info);
  }

  #count(info: PlannerWorker): Capacity {
    const capacity = new Capacity(info.resources);
    for (const claim of this.holdings.claims.values()) capacity.take(claim);
    return capacity;
  }
}
