/** The planner's picture of all workers: who holds what where, and where a request goes best. */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import { claimOf } from './capacity.ts';
import type { Candidates } from './candidates.ts';
import { attributeOf } from './constraints.ts';
import { Demand } from './demand.ts';
import { bestLocality, type Locality } from './gang.ts';
import { Held, type HeldInput } from './held.ts';
import { Holdings } from './holdings.ts';
import { Kinds } from './kinds.ts';
import { Member, type FleetWorker } from './member.ts';
import type { PlacementRequest, PlannerWorker } from './request.ts';
import { Score } from './score.ts';
import { REJECTIONS, type Rejection } from './shape.ts';
import { Shapes } from './shapes.ts';
import { States, type WorkerState } from './states.ts';

export type { FleetWorker } from './member.ts';
export type { Rejection } from './shape.ts';

/** Where a task goes: what `claimOf` needs beside its owner and its request. */
export interface Spot {
  worker: WorkerId;
  devices: number[];
  ports: number[];
}

/** Sums over open workers, whatever is held on them. */
export interface FleetTotals {
  cpuMillis: number;
  memoryMiB: number;
  deviceMillis: number;
}

const MIB = 2 ** 20;
/** States scored anew on behalf of each request, as long as some have an old score. */
const RESCORED_PER_ASK = 24;
const NO_INPUTS: readonly string[] = [];
const NOTHING_HELD: ReadonlyMap<string, number> = new Map();

export class Fleet {
  /** Rises whenever capacity is freed or appears. */
  freed = 0;
  readonly #members = new Map<WorkerId, Member>();
  /** Also of workers that are not here (yet, or any more): a claim may come before its worker. */
  readonly #holdings = new Map<WorkerId, Holdings>();
  readonly #workerOf = new Map<AttemptUid, WorkerId>();
  readonly #totals: FleetTotals = { cpuMillis: 0, memoryMiB: 0, deviceMillis: 0 };
  readonly #kinds = new Kinds();
  readonly #states = new States();
  readonly #shapes = new Shapes();
  readonly #demand = new Demand();
  readonly #held = new Held();
  #score = new Score(this.#demand.mix);
  /** States that may be scored anew now. */
  #rescoring = 0;

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
    this.#shapes.tellApart(info);
    const kind = this.#kinds.join(info);
    let member = this.#members.get(info.id);
    if (member) {
      this.#count(member.info, -1);
      this.#states.leave(member);
      this.#kinds.leave(member.kind);
      member.change(info, kind);
    } else {
      member = new Member(info, kind, this.#holdingsOf(info.id));
      this.#members.set(info.id, member);
    }
    this.#count(info, 1);
    this.#states.enter(member);
    if (info.open) this.freed++;
  }

  removeWorker(id: WorkerId): void {
    const member = this.#members.get(id);
    if (!member) return;
    this.#count(member.info, -1);
    this.#states.leave(member);
    this.#kinds.leave(member.kind);
    this.#members.delete(id);
    this.#held.remove(id);
    this.#forgetEmpty(id);
  }

  /** Inputs of jobs that the worker has already. */
  setHeld(id: WorkerId, inputs: readonly HeldInput[]): void {
    if (this.#members.has(id)) this.#held.set(id, inputs);
  }

  /** Books a claim; `request` is its owner's. Taken again, the later one counts. */
  take(claim: Claim, request: PlacementRequest): void {
    if (this.#workerOf.has(claim.owner)) this.#release(claim.owner);
    this.#workerOf.set(claim.owner, claim.worker);
    this.#holdingsOf(claim.worker).add(claim, request);
    const member = this.#members.get(claim.worker);
    if (!member) return;
    member.capacity.take(claim);
    this.#regroup(member);
  }

  give(owner: AttemptUid): void {
    if (this.#release(owner)) this.freed++;
  }

  /** The best spot now, by hashes of inputs that are fetched to it; books nothing. */
  place(request: PlacementRequest, inputs = NO_INPUTS): Spot | null {
    const candidates = this.#candidatesOf(request, 'single');
    const state = candidates.best(this.#states, this.#score);
    this.#learn(candidates, state !== null, 1);
    if (!state || inputs.length === 0) return state && this.#spotOn(state, candidates);
    const { shape, score } = candidates;
    const holder = this.#held.best(inputs, state, shape, score ?? this.#score, this.#members);
    return this.#spotOn(holder?.state ?? state, candidates, holder);
  }

  /** Spots for all members or none, on one network and of one locality; books nothing. */
  placeGang(request: PlacementRequest, size: number, inputs = NO_INPUTS): Spot[] | null {
    const candidates = this.#candidatesOf(request, 'gang');
    const { shape } = candidates;
    const held =
      inputs.length > 0 ? this.#held.byLocality(inputs, size, shape, this.#members) : NOTHING_HELD;
    const locality = bestLocality(candidates, size, held);
    this.#learn(candidates, locality !== null, size);
    return (
      locality && this.#spotsIn(locality, candidates, size, held.size > 0 ? inputs : NO_INPUTS)
    );
  }

  /** Bytes of these inputs that the worker has already. */
  heldOn(worker: WorkerId, inputs: readonly string[]): number {
    return this.#held.bytesOn(worker, inputs);
  }

  /** Every worker that cannot take it now, counted once, by the first reason. */
  rejections(request: PlacementRequest): Map<Rejection, number> {
    const { shape } = this.#candidatesOf(request, request.gangSize > 1 ? 'gang' : 'single');
    const counts = new Map<Rejection, number>();
    for (const state of this.#states.all()) {
      const why = shape.rejection(state) ?? (request.gangSize > 1 ? 'gang' : null);
      if (why) counts.set(why, (counts.get(why) ?? 0) + state.members.length);
    }
    return new Map(
      [...counts].toSorted(([a], [b]) => REJECTIONS.indexOf(a) - REJECTIONS.indexOf(b)),
    );
  }

  /** Whether it could ever take the request, whatever is held on it now. */
  accepts(worker: FleetWorker, request: PlacementRequest): boolean {
    const member = this.#members.get(worker.info.id);
    if (!member) return false;
    this.#tellApart(request);
    const { shape } = this.#shapes.of(request, 'single', this.#states.size);
    const { unsuitable, tooSmall } = shape.standing(member.kind);
    return !unsuitable && !tooSmall;
  }

  #candidatesOf(request: PlacementRequest, mode: 'single' | 'gang'): Candidates {
    this.#tellApart(request);
    const candidates = this.#shapes.of(request, mode, this.#states.size);
    candidates.update(this.#states, this.#scoreFor(candidates));
    return candidates;
  }

  /**
   * When the mix has changed, requests are scored anew one after the other: all at once would be
   * felt as a pause. Meanwhile the old score is as good as it was.
   */
  #scoreFor({ score }: Candidates): Score {
    if (this.#score.mix !== this.#demand.mix) this.#score = new Score(this.#demand.mix);
    this.#rescoring = Math.min(this.#rescoring + RESCORED_PER_ASK, this.#states.size);
    if (!score || score === this.#score) return this.#score;
    if (this.#rescoring < this.#states.size) return score;
    this.#rescoring = 0;
    return this.#score;
  }

  /** Workers are told apart by an attribute from when a request first names it. */
  #tellApart({ placement }: PlacementRequest): void {
    const { constraints, locality } = placement;
    if (constraints.length === 0 && locality === '') return;
    for (const attribute of [...constraints.map((each) => each.attribute), locality]) {
      if (!this.#kinds.name(attribute)) continue;
      for (const member of this.#members.values()) {
        if (attributeOf(member.info, attribute) === undefined) continue;
        this.#states.leave(member);
        this.#kinds.leave(member.kind);
        member.kind = this.#kinds.join(member.info);
        this.#states.enter(member);
      }
    }
  }

  /** A class that goes on waiting asks once. */
  #learn(candidates: Candidates, placed: boolean, times: number): void {
    if (placed || !candidates.refused) {
      candidates.demand ??= this.#demand.classOf(candidates.shape.request);
      if (candidates.demand) this.#demand.asked(candidates.demand, times);
    }
    candidates.refused = !placed;
  }

  /** Booked one by one, so that no two get the same; then all are given back. */
  #spotsIn(
    { name, tiers }: Locality,
    candidates: Candidates,
    size: number,
    inputs: readonly string[],
  ): Spot[] {
    const { shape } = candidates;
    // Who wants to be spread wants it more than short fetches, which bring members together.
    const seeks = inputs.length > 0 && shape.request.placement.arrangement !== 'spread';
    const spots: Spot[] = [];
    while (spots.length < size) {
      const state = tiers.best(false);
      if (!state) throw new Error(`room for ${size} was counted, there is for ${spots.length}`);
      const score = candidates.score ?? this.#score;
      const holder = seeks
        ? this.#held.best(inputs, state, shape, score, this.#members, name)
        : undefined;
      const spot = this.#spotOn(holder?.state ?? state, candidates, holder);
      const owner = trialOwner(spots.length);
      this.take(claimOf(owner, spot.worker, shape.request.resources, spot), shape.request);
      spots.push(spot);
      candidates.update(this.#states, candidates.score ?? this.#score);
    }
    for (const at of spots.keys()) this.#release(trialOwner(at));
    return spots;
  }

  #spotOn(state: WorkerState, { shape, score }: Candidates, wanted?: Member): Spot {
    const member = wanted ?? state.members.at(-1)!;
    const { ports } = shape.request.resources;
    return {
      worker: member.info.id,
      devices: shape.pickDevices(state, member.capacity, score ?? this.#score),
      ports: ports > 0 ? (member.capacity.pickPorts(ports) ?? []) : [],
    };
  }

  #release(owner: AttemptUid): boolean {
    const id = this.#workerOf.get(owner);
    if (id === undefined) return false;
    this.#workerOf.delete(owner);
    const claim = this.#holdingsOf(id).remove(owner);
    const member = this.#members.get(id);
    if (member && claim) {
      member.capacity.give(claim);
      this.#regroup(member);
    }
    this.#forgetEmpty(id);
    return true;
  }

  #regroup(member: Member): void {
    this.#states.leave(member);
    this.#states.enter(member);
  }

  #holdingsOf(id: WorkerId): Holdings {
    let holdings = this.#holdings.get(id);
    if (!holdings) this.#holdings.set(id, (holdings = new Holdings()));
    return holdings;
  }

  #forgetEmpty(id: WorkerId): void {
    if (this.#members.has(id)) return;
    if (this.#holdings.get(id)?.claims.size === 0) this.#holdings.delete(id);
  }

  #count(info: PlannerWorker, sign: 1 | -1): void {
    if (!info.open) return;
    this.#totals.cpuMillis += sign * info.resources.cpuMillis;
    this.#totals.memoryMiB += sign * Math.floor(info.resources.memoryBytes / MIB);
    this.#totals.deviceMillis += sign * 1000 * info.resources.devices.length;
  }
}

function trialOwner(at: number): AttemptUid {
  return `trial ${at}` as AttemptUid;
}
