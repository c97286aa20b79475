/** The planner's own copy of what it plans over, kept equal to the state by deltas. */
import { Capacity } from '../placement/capacity.ts';
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, JobId, TaskId, WorkerId } from '../../model/ids.ts';
import type { PlacementRequest, PlannerWorker } from '../placement/request.ts';
import { PendingQueue } from './queue.ts';

export interface PendingTask {
  task: TaskId;
  job: JobId;
  index: number;
  version: number;
  classKey: string;
  round: number;
  attempts: number;
  notBeforeMs: number;
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

/** Use over time, halved every half-life: resource times milliseconds. */
export interface Usage {
  cpuMillis: number;
  memoryMiB: number;
  deviceMillis: number;
  asOfMs: number;
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

/** A class of interchangeable pending tasks. */
export interface PendingClass {
  request: PlacementRequest;
  queue: PendingQueue;
  /** The view's `freed` when it last did not fit: until that rises it need not be tried again. */
  blockedAt: number;
  /** Why its head waits, for a person. */
  reason: string;
}

export interface ViewWorker {
  info: PlannerWorker;
  capacity: Capacity;
}

export class PlannerView {
  readonly classes = new Map<string, PendingClass>();
  readonly workers = new Map<WorkerId, ViewWorker>();
  readonly claims = new Map<AttemptUid, Claim>();
  /** Rises whenever capacity is freed or appears. */
  freed = 0;
  /** Classes of which nothing waits any more, since the last plan. */
  emptied: string[] = [];
  readonly #pending = new Map<TaskId, PendingTask>();

  update(deltas: PlannerDeltas): void {
    for (const request of deltas.requests) {
      if (this.classes.has(request.key)) continue;
      const queue = new PendingQueue(request.gangSize);
      this.classes.set(request.key, { request, queue, blockedAt: -1, reason: '' });
    }
    for (const uid of deltas.claimsGone) this.#free(uid);
    for (const worker of deltas.workers) this.#setWorker(worker);
    for (const id of deltas.workersGone) this.workers.delete(id);
    for (const { claim } of deltas.claims) this.hold(claim);
    // New ones first: a class that is both left and joined goes on.
    for (const task of deltas.pending) this.#add(task);
    for (const task of deltas.notPending) this.#remove(task);
  }

  /**
   * Books a claim in the copy, also for what was only planned: a delta corrects it if it is
   * refused.
   */
  hold(claim: Claim): void {
    if (this.claims.has(claim.owner)) return;
    this.claims.set(claim.owner, claim);
    this.workers.get(claim.worker)?.capacity.take(claim);
  }

  pendingCount(): number {
    return this.#pending.size;
  }

  #free(uid: AttemptUid): void {
    const claim = this.claims.get(uid);
    if (!claim) return;
    this.claims.delete(uid);
    this.workers.get(claim.worker)?.capacity.give(claim);
    this.freed++;
  }

  #setWorker(info: PlannerWorker): void {
    const capacity = new Capacity(info.resources);
    this.workers.set(info.id, { info, capacity });
    for (const claim of this.claims.values()) if (claim.worker === info.id) capacity.take(claim);
    if (info.open) this.freed++;
  }

  #add(task: PendingTask): void {
    const old = this.#pending.get(task.task);
    if (old) this.classes.get(old.classKey)?.queue.remove(old);
    this.#pending.set(task.task, task);
    const pending = this.classes.get(task.classKey);
    if (!pending) return;
    pending.queue.add(task);
    // A gang may be complete now; another single task of the class changes nothing.
    if (pending.request.gangSize > 1) pending.blockedAt = -1;
  }

  #remove(id: TaskId): void {
    const task = this.#pending.get(id);
    if (!task) return;
    this.#pending.delete(id);
    const pending = this.classes.get(task.classKey);
    pending?.queue.remove(task);
    if (pending?.queue.size !== 0) return;
    this.classes.delete(task.classKey);
    this.emptied.push(task.classKey);
  }
}
