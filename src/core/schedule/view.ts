/** The planner's own copy of what it plans over, kept equal to the state by deltas. */
import type { Usage } from '../../model/account.ts';
import type { Claim } from '../../model/claim.ts';
import {
  taskOf,
  type AttemptUid,
  type JobId,
  type TaskId,
  type WorkerId,
} from '../../model/ids.ts';
import { Fleet } from '../placement/fleet.ts';
import type { HeldInput } from '../placement/held.ts';
import type { PlacementRequest, PlannerWorker } from '../placement/request.ts';
import { Accounts, type Account } from './accounts.ts';
import { Ageing } from './ageing.ts';
import { Classes, type PendingClass } from './classes.ts';
import { Nominations } from './nominations.ts';
import { Prices } from './prices.ts';
import { holdOf } from './quota.ts';
import { Reservations } from './reservations.ts';

export interface PendingTask {
  task: TaskId;
  job: JobId;
  index: number;
  version: number;
  classKey: string;
  round: number;
  attempts: number;
  notBeforeMs: number;
  /** Since when it waits. */
  sinceMs: number;
  /** Hashes of what is fetched before it starts; absent: nothing that has one. */
  inputs?: readonly string[];
}

/** A claim with what a planner must know of its owner. */
export interface PlannerClaim {
  claim: Claim;
  job: JobId;
  classKey: string;
  /** When its attempt was assigned, or nominated. */
  sinceMs: number;
}

/**
 * What one user of a tenant (or with an empty user the whole tenant) may still have, and has had.
 * A null limits nothing.
 */
export interface PlannerAccount {
  tenant: string;
  user: string;
  weight: number;
  /** Thousandths of devices at once. */
  deviceMillis: number | null;
  /** Left of the device time of this day and month, whichever is less. */
  deviceMsLeft: number | null;
  /** Left of the money of this day and month, whichever is less, holds taken off. */
  microsLeft: number | null;
  /** Over a limit: hard holds the work, soft places it behind everybody else's. */
  mode: 'soft' | 'hard';
  /** Decayed use by ended attempts as of `asOfMs`. */
  usage: Usage;
}

/** Plain data: it crosses threads. */
export interface PlannerDeltas {
  requests: PlacementRequest[];
  pending: PendingTask[];
  notPending: TaskId[];
  workers: PlannerWorker[];
  workersGone: WorkerId[];
  claims: PlannerClaim[];
  claimsGone: AttemptUid[];
  accounts: PlannerAccount[];
  /** What workers hold of inputs, instead of what was said before; absent: as before. */
  held?: [WorkerId, HeldInput[]][];
}

/** A claim as booked in the copy. */
export interface Booked {
  claim: Claim;
  job: JobId;
  sinceMs: number;
  of: PendingClass;
}

export class PlannerView {
  readonly fleet = new Fleet();
  readonly accounts = new Accounts();
  readonly prices = new Prices();
  readonly classes = new Classes(this.accounts);
  readonly claims = new Map<AttemptUid, Booked>();
  readonly nominations = new Nominations();
  readonly reservations = new Reservations(this.fleet);
  readonly ageing = new Ageing();
  /** Workers on which something was freed since the last plan. */
  readonly freed = new Set<WorkerId>();
  /** Workers came, went or changed since the last plan: what was said of them may be wrong. */
  recomposed = false;
  /** Classes that may fit, but not where the money of their account suffices. */
  readonly frugal = new Set<PendingClass>();
  /** Claims by band, and of those the ones that may be interrupted by their own band. */
  readonly #running: number[] = [];
  readonly #willing: number[] = [];
  /** Claims of jobs whose number counts: gangs, and arrays with a limit. */
  readonly #ofJob = new Map<JobId, Set<AttemptUid>>();

  update(deltas: PlannerDeltas): void {
    const { classes } = this;
    for (const request of deltas.requests) classes.add(request);
    for (const uid of deltas.claimsGone) this.unbook(uid);
    for (const worker of deltas.workers) this.#setWorker(worker);
    for (const id of deltas.workersGone) this.fleet.removeWorker(id);
    if (deltas.workers.length + deltas.workersGone.length > 0) this.recomposed = true;
    for (const [worker, inputs] of deltas.held ?? []) this.fleet.setHeld(worker, inputs);
    for (const claim of deltas.claims) this.book(claim);
    // New ones first: a class that is both left and joined goes on.
    for (const task of deltas.pending) classes.addTask(task);
    for (const task of deltas.notPending) classes.removeTask(task);
    for (const row of deltas.accounts) this.#reopen(this.accounts.set(row));
    classes.dropIdle();
  }

  /**
   * Books a claim in the copy, also one that was only planned: a delta corrects it if it is
   * refused.
   */
  book({ claim, job, classKey, sinceMs }: PlannerClaim): void {
    const old = this.claims.get(claim.owner);
    if (old?.of.request.key === classKey && sameHolding(old.claim, claim)) {
      const was = old.claim.state;
      old.claim = claim;
      old.sinceMs = sinceMs;
      if (was !== claim.state) this.#changed(old, was);
      return;
    }
    if (old) this.unbook(claim.owner);
    const of = this.classes.get(classKey);
    const booked = { claim, job, sinceMs, of };
    this.claims.set(claim.owner, booked);
    this.fleet.take(claim, of.request);
    of.claims++;
    this.#count(of, claim, 1);
    if (isCounted(of.request)) {
      const claims = this.#ofJob.get(job);
      if (claims) claims.add(claim.owner);
      else this.#ofJob.set(job, new Set([claim.owner]));
    }
    if (claim.state === 'NOMINATED') this.#changed(booked, 'HELD');
  }

  unbook(uid: AttemptUid): void {
    const booked = this.claims.get(uid);
    if (!booked) return;
    const { claim, job, of } = booked;
    this.claims.delete(uid);
    this.fleet.give(uid);
    this.freed.add(claim.worker);
    of.claims--;
    this.#count(of, claim, -1);
    for (const account of [of.owner.tenant, of.owner.user]) {
      account.release(uid);
      this.#reopen(account);
    }
    const claims = this.#ofJob.get(job);
    if (claims?.delete(uid) && claims.size === 0) this.#ofJob.delete(job);
    if (claims && of.queue.callBack(job)) this.classes.open.add(of);
    if (this.nominations.remove(booked)) this.classes.renounce(taskOf(uid));
    this.classes.mayBeIdle(of);
  }

  /** Puts what a planned claim sets aside on its accounts, until they are told of it. */
  setAside({ owner: uid, worker }: Claim, { owner, request }: PendingClass): void {
    const hold = holdOf(request, this.fleet.worker(worker)?.info ?? null);
    owner.tenant.hold(uid, hold);
    if (owner.user !== owner.tenant) owner.user.hold(uid, hold);
  }

  /** Whether anything holds something that might have to make way for the request. */
  hasWorkBelow({ band, placement }: PlacementRequest): boolean {
    for (const [at, count] of this.#running.entries()) {
      if (at > band && (count ?? 0) > 0) return true;
    }
    return !placement.interruptible && (this.#willing[band] ?? 0) > 0;
  }

  pendingCount(): number {
    return this.classes.taskCount();
  }

  /** Claims of a gang, or of an array with a limit. */
  claimsOf(job: JobId): ReadonlySet<AttemptUid> {
    return this.#ofJob.get(job) ?? NONE;
  }

  #changed(booked: Booked, was: Claim['state']): void {
    const task = taskOf(booked.claim.owner);
    if (booked.claim.state === 'NOMINATED') {
      this.nominations.add(booked);
      this.classes.nominate(task);
    } else if (was === 'NOMINATED') {
      this.nominations.remove(booked);
      this.classes.settle(task);
    }
  }

  #count({ owner, request }: PendingClass, claim: Claim, sign: 1 | -1): void {
    const { tenant, user } = owner;
    const { band } = request;
    this.#running[band] = (this.#running[band] ?? 0) + sign;
    if (request.placement.interruptible) this.#willing[band] = (this.#willing[band] ?? 0) + sign;
    tenant.count(claim, sign);
    if (user !== tenant) user.count(claim, sign);
  }

  #reopen({ waiting }: Account): void {
    for (const pending of waiting) this.classes.open.add(pending);
    waiting.clear();
  }

  #setWorker(info: PlannerWorker): void {
    this.fleet.setWorker(info);
    this.prices.set(info);
    if (info.open) this.freed.add(info.id);
    const { tenants, users } = info.terms;
    if (tenants.length + users.length > 0) this.classes.tellTenantsApart();
  }
}

const NONE: ReadonlySet<AttemptUid> = new Set();

function isCounted({ gangSize, arrayLimit }: PlacementRequest): boolean {
  return gangSize > 1 || arrayLimit > 0;
}

/** Whether only the state of the claim differs, if anything. */
function sameHolding(a: Claim, b: Claim): boolean {
  return (
    a.worker === b.worker &&
    a.cpuMillis === b.cpuMillis &&
    a.memoryBytes === b.memoryBytes &&
    a.share === b.share &&
    equal(a.devices, b.devices) &&
    equal(a.ports, b.ports)
  );
}

function equal(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((each, at) => each === b[at]);
}
