/** The planner's own copy of what it plans over, kept equal to the state by deltas. */
import type { Usage } from '../../model/account.ts';
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, JobId, TaskId, WorkerId } from '../../model/ids.ts';
import { Fleet } from '../placement/fleet.ts';
import type { PlacementRequest, PlannerWorker } from '../placement/request.ts';
import { Accounts, type Owner } from './accounts.ts';
import { PendingQueue } from './queue.ts';
import { Shapes, type Shape } from './shapes.ts';

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
}

/** A class of interchangeable tasks, of which some wait or hold something. */
export interface PendingClass {
  request: PlacementRequest;
  owner: Owner;
  shape: Shape;
  queue: PendingQueue;
  /** How many tasks wait. */
  waiting: number;
  claims: number;
  /** What was last said of why its head waits; empty: nothing. */
  told: string;
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
  readonly shapes = new Shapes();
  readonly classes = new Map<string, PendingClass>();
  readonly claims = new Map<AttemptUid, Booked>();
  /** Classes that may have something to place: new, or what they waited for has changed. */
  readonly open = new Set<PendingClass>();
  /** Classes with tasks that wait for a time. */
  readonly sleeping = new Set<PendingClass>();
  /** Workers on which something was freed since the last plan. */
  readonly freed = new Set<WorkerId>();
  /** Workers came, went or changed since the last plan: what was said of them may be wrong. */
  recomposed = false;
  /** Classes of which nothing waits any more, since the last plan. */
  emptied: string[] = [];
  /** Claims of jobs whose number counts: gangs, and arrays with a limit. */
  readonly #ofJob = new Map<JobId, Set<AttemptUid>>();
  readonly #pending = new Map<TaskId, PendingTask>();
  /** Classes that may have nothing left. */
  readonly #idle = new Set<PendingClass>();
  #byTenant = false;

  update(deltas: PlannerDeltas): void {
    for (const request of deltas.requests) this.#addClass(request);
    for (const uid of deltas.claimsGone) this.#free(uid);
    for (const worker of deltas.workers) this.#setWorker(worker);
    for (const id of deltas.workersGone) this.fleet.removeWorker(id);
    if (deltas.workers.length + deltas.workersGone.length > 0) this.recomposed = true;
    for (const claim of deltas.claims) this.book(claim);
    // New ones first: a class that is both left and joined goes on.
    for (const task of deltas.pending) this.#add(task);
    for (const task of deltas.notPending) this.#remove(task);
    for (const row of deltas.accounts) this.#reopen(this.accounts.set(row).waiting);
    for (const pending of this.#idle) this.#dropIdle(pending);
    this.#idle.clear();
  }

  /**
   * Books a claim in the copy, also one that was only planned: a delta corrects it if it is
   * refused.
   */
  book({ claim, job, classKey, sinceMs }: PlannerClaim): void {
    const old = this.claims.get(claim.owner);
    if (old && sameHolding(old.claim, claim)) {
      old.claim = claim;
      old.sinceMs = sinceMs;
      return;
    }
    if (old) this.#free(claim.owner);
    const of = this.classes.get(classKey);
    if (!of) throw new Error(`claim ${claim.owner} is of class ${classKey}, which nobody told`);
    this.claims.set(claim.owner, { claim, job, sinceMs, of });
    this.fleet.take(claim, of.request);
    of.claims++;
    this.#count(of, claim, 1);
    if (isCounted(of.request)) {
      const claims = this.#ofJob.get(job);
      if (claims) claims.add(claim.owner);
      else this.#ofJob.set(job, new Set([claim.owner]));
    }
  }

  pendingCount(): number {
    return this.#pending.size;
  }

  /** Claims of a gang, or of an array with a limit. */
  claimsOf(job: JobId): ReadonlySet<AttemptUid> {
    return this.#ofJob.get(job) ?? NONE;
  }

  #addClass(request: PlacementRequest): void {
    if (this.classes.has(request.key)) return;
    const pending: PendingClass = {
      request,
      owner: this.accounts.owner(request.tenant, request.user),
      shape: this.shapes.of(request, this.#byTenant),
      queue: new PendingQueue(request.gangSize),
      waiting: 0,
      claims: 0,
      told: '',
    };
    pending.shape.classes.add(pending);
    this.classes.set(request.key, pending);
  }

  #free(uid: AttemptUid): void {
    const booked = this.claims.get(uid);
    if (!booked) return;
    const { claim, job, of } = booked;
    this.claims.delete(uid);
    this.fleet.give(uid);
    this.freed.add(claim.worker);
    of.claims--;
    this.#count(of, claim, -1);
    const { tenant, user } = of.owner;
    for (const account of [tenant, user]) {
      account.release(uid);
      this.#reopen(account.waiting);
    }
    const claims = this.#ofJob.get(job);
    if (claims?.delete(uid) && claims.size === 0) this.#ofJob.delete(job);
    if (claims && of.queue.callBack(job)) this.open.add(of);
    this.#idle.add(of);
  }

  #count({ owner: { tenant, user } }: PendingClass, claim: Claim, sign: 1 | -1): void {
    tenant.count(claim, sign);
    if (user !== tenant) user.count(claim, sign);
  }

  #reopen(waiting: Set<PendingClass>): void {
    for (const pending of waiting) this.open.add(pending);
    waiting.clear();
  }

  #setWorker(info: PlannerWorker): void {
    this.fleet.setWorker(info);
    if (info.open) this.freed.add(info.id);
    if (info.terms.tenants.length > 0 && !this.#byTenant) this.#tellTenantsApart();
  }

  /** From now on what fits for one tenant may not for another. */
  #tellTenantsApart(): void {
    this.#byTenant = true;
    for (const pending of this.classes.values()) {
      this.shapes.drop(pending);
      pending.shape = this.shapes.of(pending.request, true);
      pending.shape.classes.add(pending);
      if (pending.waiting > 0) this.open.add(pending);
    }
  }

  #add(task: PendingTask): void {
    const pending = this.classes.get(task.classKey);
    if (!pending) throw new Error(`task ${task.task} is of class ${task.classKey}, untold`);
    const old = this.#pending.get(task.task);
    if (old) this.#unlist(old);
    this.#pending.set(task.task, task);
    pending.waiting++;
    pending.queue.add(task);
    if (pending.queue.sleeping) this.sleeping.add(pending);
    // Another single task of a class that does not fit changes nothing; a gang may be complete.
    if (pending.told === '' || pending.request.gangSize > 1) this.open.add(pending);
  }

  #remove(id: TaskId): void {
    const task = this.#pending.get(id);
    if (!task) return;
    this.#pending.delete(id);
    const pending = this.#unlist(task);
    if (pending?.waiting === 0) this.emptied.push(task.classKey);
  }

  #unlist(task: PendingTask): PendingClass | undefined {
    const pending = this.classes.get(task.classKey);
    if (!pending) return undefined;
    pending.queue.remove(task);
    pending.waiting--;
    if (!pending.queue.sleeping) this.sleeping.delete(pending);
    if (pending.waiting === 0) this.#idle.add(pending);
    return pending;
  }

  #dropIdle(pending: PendingClass): void {
    if (pending.waiting > 0) return;
    pending.told = '';
    this.open.delete(pending);
    pending.owner.tenant.waiting.delete(pending);
    pending.owner.user.waiting.delete(pending);
    if (pending.claims > 0 || !this.classes.delete(pending.request.key)) return;
    this.shapes.drop(pending);
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
    a.devices.join() === b.devices.join() &&
    a.ports.join() === b.ports.join()
  );
}
