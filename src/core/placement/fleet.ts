/** The planner's picture of all workers: who holds what where, and where a request goes best. */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import { Capacity, type Misfit } from './capacity.ts';
import { preference, tooSmall, unsuitable, type Unsuitable } from './constraints.ts';
import { placeGang } from './gang.ts';
import type { PlacementRequest, PlannerWorker } from './request.ts';
import { Holdings } from './holdings.ts';

/** Where a task goes: what `claimOf` needs beside its owner and its request. */
export interface Spot {
  worker: WorkerId;
  devices: number[];
  ports: number[];
}

/** Why a worker is passed over, in the order it is checked. */
export type Rejection = Unsuitable | 'anti-affinity' | 'exclusive' | Misfit | 'gang';

export interface FleetWorker {
  info: PlannerWorker;
  capacity: Capacity;
  claims: Map<AttemptUid, Claim>;
}

/** Sums over open workers, whatever is held on them. */
export interface FleetTotals {
  cpuMillis: number;
  memoryMiB: number;
  deviceMillis: number;
}

const MIB = 2 ** 20;

class Member implements FleetWorker {
  info: PlannerWorker;
  capacity: Capacity;
  readonly holdings: Holdings;

  constructor(info: PlannerWorker, holdings: Holdings) {
    this.info = info;
    this.holdings = holdings;
    this.capacity = new Capacity(info.resources);
    for (const claim of holdings.claims.values()) this.capacity.take(claim);
  }

  get claims(): Map<AttemptUid, Claim> {
    return this.holdings.claims;
  }
}

export class Fleet {
  /** Rises whenever capacity is freed or appears. */
  freed = 0;
  readonly #members = new Map<WorkerId, Member>();
  /** Also of workers that are not here (yet, or any more): a claim may come before its worker. */
  readonly #holdings = new Map<WorkerId, Holdings>();
  readonly #workerOf = new Map<AttemptUid, WorkerId>();
  readonly #totals: FleetTotals = { cpuMillis: 0, memoryMiB: 0, deviceMillis: 0 };

  get size(): number {
    return this.#members.size;
  }

  worker(id: WorkerId): FleetWorker | undefined {
    return this.#members.get(id);
  }

  workers(): Iterable<FleetWorker> {
    return this.#members.values();
  }

  totals(): FleetTotals {
    return { ...this.#totals };
  }

  /** New or changed; claims taken on it stay. */
  setWorker(info: PlannerWorker): void {
    const old = this.#members.get(info.id);
    if (old) this.#count(old.info, -1);
    this.#count(info, 1);
    this.#members.set(info.id, new Member(info, this.#holdingsOf(info.id)));
    if (info.open) this.freed++;
  }

  removeWorker(id: WorkerId): void {
    const member = this.#members.get(id);
    if (!member) return;
    this.#count(member.info, -1);
    this.#members.delete(id);
    this.#forgetEmpty(id);
  }

  /** Books a claim; `request` is its owner's. Taken again, the later one counts. */
  take(claim: Claim, request: PlacementRequest): void {
    this.#release(claim.owner);
    this.#workerOf.set(claim.owner, claim.worker);
    this.#holdingsOf(claim.worker).add(claim, request);
    this.#members.get(claim.worker)?.capacity.take(claim);
  }

  give(owner: AttemptUid): void {
    if (this.#release(owner)) this.freed++;
  }

  /** The best spot now; books nothing. */
  place(request: PlacementRequest): Spot | null {
    let best: Spot | null = null;
    let bestPreference = -1;
    for (const member of this.#members.values()) {
      if (blocked(member, request)) continue;
      const preferred = preference(member.info, request);
      if (preferred <= bestPreference) continue;
      const fit = member.capacity.fit(request.resources);
      if (!fit.fits) continue;
      best = { worker: member.info.id, devices: fit.devices, ports: fit.ports };
      bestPreference = preferred;
    }
    return best;
  }

  /** Spots for all members or none, on one network and of one locality; books nothing. */
  placeGang(request: PlacementRequest, size: number): Spot[] | null {
    const usable = [...this.#members.values()].filter((member) => !blocked(member, request));
    return placeGang(request, size, usable);
  }

  /** Every worker that cannot take it now, counted once, by the first reason. */
  rejections(request: PlacementRequest): Map<Rejection, number> {
    const counts = new Map<Rejection, number>();
    for (const member of this.#members.values()) {
      const why = blocked(member, request) ?? shortOf(member, request);
      if (why) counts.set(why, (counts.get(why) ?? 0) + 1);
    }
    return counts;
  }

  /** Whether it could ever take the request, whatever is held on it now. */
  accepts(worker: FleetWorker, request: PlacementRequest): boolean {
    return !unsuitable(worker.info, request) && !tooSmall(worker.info, request);
  }

  #release(owner: AttemptUid): boolean {
    const id = this.#workerOf.get(owner);
    if (id === undefined) return false;
    this.#workerOf.delete(owner);
    const claim = this.#holdingsOf(id).remove(owner);
    if (claim) this.#members.get(id)?.capacity.give(claim);
    this.#forgetEmpty(id);
    return true;
  }

  #holdingsOf(id: WorkerId): Holdings {
    let holdings = this.#holdings.get(id);
    if (!holdings) this.#holdings.set(id, (holdings = new Holdings()));
    return holdings;
  }

  #forgetEmpty(id: WorkerId): void {
    if (!this.#members.has(id) && this.#holdings.get(id)?.claims.size === 0) {
      this.#holdings.delete(id);
    }
  }

  #count(info: PlannerWorker, sign: 1 | -1): void {
    if (!info.open) return;
    this.#totals.cpuMillis += sign * info.resources.cpuMillis;
    this.#totals.memoryMiB += sign * Math.floor(info.resources.memoryBytes / MIB);
    this.#totals.deviceMillis += sign * 1000 * info.resources.devices.length;
  }
}

function blocked(member: Member, request: PlacementRequest): Rejection | null {
  return unsuitable(member.info, request) ?? member.holdings.refuses(request);
}

function shortOf(member: Member, request: PlacementRequest): Rejection | null {
  const fit = member.capacity.fit(request.resources);
  if (!fit.fits) return fit.short;
  return request.gangSize > 1 ? 'gang' : null;
}
