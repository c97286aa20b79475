/**
 * The cheapest set of lower work whose end would make room. Worker by worker: victims are added
 * until it fits, cheapest first or largest first, whichever comes out cheaper; then those that turn
 * out not to be needed are let go. A gang takes the cheapest workers of one group.
 */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid } from '../../model/ids.ts';
import { claimOf, type Capacity } from '../placement/capacity.ts';
import type { FleetWorker, Spot } from '../placement/fleet.ts';
import type { PlacementRequest } from '../placement/request.ts';
import { conflicts } from './ends.ts';
import { Heap } from './heap.ts';
import { groupOf, scratchOf } from './shadow.ts';
import { mayInterrupt, unitOf, type Unit } from './victims.ts';
import type { PlannerView } from './view.ts';

export interface Preemption {
  spots: Spot[];
  units: Unit[];
}

/** Workers looked at for a task of its own; a gang needs to see all. */
const LOOKS = 512;

export function choosePreemption(
  view: PlannerView,
  request: PlacementRequest,
  count: number,
  nowMs: number,
): Preemption | null {
  const stride = count > 1 ? 1 : Math.max(1, Math.floor(view.fleet.size / LOOKS));
  const groups = new Map<string, Site[]>();
  let at = 0;
  let best: { site: Site; step: Step } | null = null;
  for (const worker of view.fleet.workers()) {
    if (at++ % stride !== 0 || !view.fleet.accepts(worker, request)) continue;
    const site = new Site(view, worker, request, nowMs);
    if (count === 1) {
      const step = site.next();
      if (step && (!best || step.cost < best.step.cost)) best = { site, step };
      if (best?.step.cost === 0) break;
      continue;
    }
    const group = groupOf(worker, request.placement.locality);
    if (group === null) continue;
    const list = groups.get(group);
    if (list) list.push(site);
    else groups.set(group, [site]);
  }
  if (best) return { spots: [best.step.spot], units: best.step.units };
  const chosen = cheapestGroup([...groups.values()], count);
  return chosen && withoutNeedless(view, request, chosen, nowMs);
}

/** What it takes to fit one more member on a worker. */
interface Step {
  spot: Spot;
  units: Unit[];
  cost: number;
}

/** One worker as it would be without its victims, and with the members it got so far. */
class Site {
  readonly #request: PlacementRequest;
  readonly #worker: FleetWorker;
  readonly #units: Unit[];
  readonly #scratch: Capacity;
  /** Claims beside which it may not be, and those of them that are still there. */
  readonly #unbearable = new Set<AttemptUid>();
  readonly #conflicting = new Set<AttemptUid>();
  readonly #gone = new Set<Unit>();
  readonly #most: number;
  #members = 0;

  constructor(view: PlannerView, worker: FleetWorker, request: PlacementRequest, nowMs: number) {
    this.#request = request;
    this.#worker = worker;
    this.#scratch = scratchOf(worker);
    const { exclusive, antiAffinity } = request.placement;
    this.#most = exclusive || antiAffinity !== '' ? 1 : Number.POSITIVE_INFINITY;
    const units = new Map<string, Unit>();
    for (const claim of worker.claims.values()) {
      const booked = view.claims.get(claim.owner);
      if (booked?.claim.state === 'RELEASING') {
        this.#scratch.give(withoutPorts(claim));
        continue;
      }
      if (conflicts(view, claim, request)) this.#unbearable.add(claim.owner);
      if (booked?.claim.state !== 'HELD' || !mayInterrupt(request, booked.of.request)) continue;
      // Placed just now: it may yet be refused.
      if (booked.sinceMs >= nowMs) continue;
      const unit = unitOf(view, booked, nowMs);
      units.set(unit.key, unit);
    }
    this.#units = [...units.values()];
    for (const owner of this.#unbearable) this.#conflicting.add(owner);
  }

  /** Room for so many when these have gone, on a site that nothing was done to yet. */
  host(count: number, units: Unit[]): Spot[] | null {
    for (const unit of units) this.#remove(unit);
    const spots: Spot[] = [];
    while (spots.length < count) {
      const spot = this.#fit();
      if (!spot) return null;
      this.#take(spot);
      spots.push(spot);
    }
    return spots;
  }

  /** Books what the next member takes, with the victims it needs; null: it does not fit. */
  next(): Step | null {
    if (this.#members >= this.#most) return null;
    const open = this.#units.filter((unit) => !this.#gone.has(unit));
    const cheapest = open.toSorted((a, b) => a.cost - b.cost);
    let chosen = this.#choose(cheapest);
    if (!chosen) return null;
    if (chosen.length > 1) {
      const largest = open.toSorted((a, b) => this.#sizeHere(b) - this.#sizeHere(a));
      const other = this.#choose(largest);
      if (other && costOf(other) < costOf(chosen)) chosen = other;
    }
    for (const unit of chosen) this.#remove(unit);
    const spot = this.#fit() as Spot;
    this.#take(spot);
    this.#members++;
    return { spot, units: chosen, cost: costOf(chosen) };
  }

  /** Leaves everything as it was. */
  #choose(order: Unit[]): Unit[] | null {
    const chosen: Unit[] = [];
    let spot = this.#fit();
    for (const unit of order) {
      if (spot) break;
      this.#remove(unit);
      chosen.push(unit);
      spot = this.#fit();
    }
    const needed: Unit[] = [];
    if (spot) {
      for (const unit of chosen.toSorted((a, b) => b.cost - a.cost)) {
        this.#restore(unit);
        if (this.#fit()) continue;
        this.#remove(unit);
        needed.push(unit);
      }
    }
    for (const unit of spot ? needed : chosen) this.#restore(unit);
    return spot ? needed : null;
  }

  #fit(): Spot | null {
    if (this.#conflicting.size > 0) return null;
    const fit = this.#scratch.fit(this.#request.resources);
    if (!fit.fits) return null;
    return { worker: this.#worker.info.id, devices: fit.devices, ports: fit.ports };
  }

  #take(spot: Spot): void {
    const { resources } = this.#request;
    this.#scratch.take(claimOf('' as AttemptUid, spot.worker, resources, spot));
  }

  #remove(unit: Unit): void {
    this.#gone.add(unit);
    for (const claim of this.#claimsHere(unit)) {
      this.#scratch.give(withoutPorts(claim));
      this.#conflicting.delete(claim.owner);
    }
  }

  #restore(unit: Unit): void {
    this.#gone.delete(unit);
    for (const claim of this.#claimsHere(unit)) {
      this.#scratch.take(withoutPorts(claim));
      if (this.#unbearable.has(claim.owner)) this.#conflicting.add(claim.owner);
    }
  }

  *#claimsHere({ claims }: Unit): Iterable<Claim> {
    for (const { claim } of claims) if (claim.worker === this.#worker.info.id) yield claim;
  }

  #sizeHere(unit: Unit): number {
    let size = 0;
    for (const { devices, share, cpuMillis } of this.#claimsHere(unit)) {
      size += devices.length * share * 1000 + cpuMillis;
    }
    return size;
  }
}

/** Takes one step after the other where it is cheapest, and the group where that costs least. */
function cheapestGroup(groups: Site[][], count: number): Preemption | null {
  let best: { spots: Spot[]; units: Map<string, Unit>; cost: number } | null = null;
  for (const sites of groups) {
    const steps = new Heap<{ site: Site; step: Step }>((a, b) => a.step.cost < b.step.cost);
    const push = (site: Site): void => {
      const step = site.next();
      if (step) steps.push({ site, step });
    };
    for (const site of sites) push(site);
    const spots: Spot[] = [];
    const units = new Map<string, Unit>();
    for (let top = steps.pop(); top && spots.length < count; top = steps.pop()) {
      spots.push(top.step.spot);
      for (const unit of top.step.units) units.set(unit.key, unit);
      if (spots.length < count) push(top.site);
    }
    if (spots.length < count) continue;
    const cost = costOf([...units.values()]);
    if (!best || cost < best.cost) best = { spots, units, cost };
  }
  return best && { spots: best.spots, units: [...best.units.values()] };
}

/** A gang that ends on one worker ends on the others too: what was to make room there may stay. */
function withoutNeedless(
  view: PlannerView,
  request: PlacementRequest,
  { spots, units }: Preemption,
  nowMs: number,
): Preemption {
  const members = new Map<FleetWorker, number>();
  for (const { worker: id } of spots) {
    const worker = view.fleet.worker(id) as FleetWorker;
    members.set(worker, (members.get(worker) ?? 0) + 1);
  }
  const hosted = (victims: Unit[]): Spot[] | null => {
    const all: Spot[] = [];
    for (const [worker, count] of members) {
      const here = new Site(view, worker, request, nowMs).host(count, victims);
      if (!here) return null;
      all.push(...here);
    }
    return all;
  };
  let needed = { spots, units };
  for (const unit of units.toSorted((a, b) => b.cost - a.cost)) {
    const fewer = needed.units.filter((each) => each !== unit);
    const without = hosted(fewer);
    if (without) needed = { spots: without, units: fewer };
  }
  return needed;
}

function costOf(units: Unit[]): number {
  return units.reduce((sum, { cost }) => sum + cost, 0);
}

/** A victim's ports are given to nobody until it has gone. */
function withoutPorts(claim: Claim): Claim {
  return { ...claim, ports: [] };
}
