/**
 * One plan: whose turn it is gets the best place there is, until nothing that waits fits or the
 * plan is long enough. What is planned is booked in the view at once.
 */
import type { Claim } from '../../model/claim.ts';
import { attemptUid, type JobId, type TaskId } from '../../model/ids.ts';
import { claimOf } from '../placement/capacity.ts';
import type { Spot } from '../placement/fleet.ts';
import { explainMisfit, noRoom, type Explanation } from '../explain.ts';
import { Order } from './order.ts';
import type { Shape } from './shapes.ts';
import type { PendingClass, PendingTask, PlannerView } from './view.ts';

export interface SchedulePolicy {
  /** Past use counts half after this long. */
  halfLifeMs: number;
  /** What has waited longer than this is not overtaken in its band. */
  ageingMs: number;
  backfill: boolean;
  preemption: boolean;
  /** A plan stays short so that its mutations are applied while they are fresh. */
  placementsPerPlan: number;
}

export const DEFAULT_POLICY: SchedulePolicy = {
  halfLifeMs: 7 * 24 * 3_600_000,
  ageingMs: 24 * 3_600_000,
  backfill: true,
  preemption: true,
  placementsPerPlan: 2000,
};

export interface Placement {
  job: JobId;
  round: number;
  tasks: { task: TaskId; version: number; claim: Claim }[];
}

export interface Plan {
  placements: Placement[];
  /** Why the head of a class waits, where that has changed. */
  waiting: { classKey: string; why: Explanation }[];
  /** Classes that wait no longer: placed, or left by all. Apply before `waiting`. */
  cleared: string[];
  /** When something that waits for a time becomes ready; null: nothing does. */
  nextAtMs: number | null;
  /** The limit of one plan was reached and there is more to place. */
  more: boolean;
}

export function plan(
  view: PlannerView,
  nowMs: number,
  randomHex: () => string,
  policy: SchedulePolicy,
): Plan {
  return new Planning(view, nowMs, randomHex, policy).run();
}

/**
 * Explaining looks at every worker. So many looks a plan may take; what is not explained in full
 * then is when somebody asks.
 */
const LOOKS_PER_PLAN = 20_000;

class Planning {
  readonly view: PlannerView;
  readonly nowMs: number;
  readonly policy: SchedulePolicy;
  readonly made: Plan = { placements: [], waiting: [], cleared: [], nextAtMs: null, more: false };
  readonly #randomHex: () => string;
  #placed = 0;
  #looks = 0;
  readonly #misfits = new Map<Shape, Explanation>();

  constructor(view: PlannerView, nowMs: number, randomHex: () => string, policy: SchedulePolicy) {
    this.view = view;
    this.nowMs = nowMs;
    this.policy = policy;
    this.#randomHex = randomHex;
  }

  run(): Plan {
    const { view, made } = this;
    made.cleared.push(...view.emptied.splice(0));
    this.#wake();
    this.#unblock();
    this.#tellAgain();
    if (view.open.size === 0) return made;
    const order = new Order(view.open, {
      nowMs: this.nowMs,
      halfLifeMs: this.policy.halfLifeMs,
      ageingMs: this.policy.ageingMs,
      totals: view.fleet.totals(),
    });
    for (let next = order.first(); next; next = order.first()) {
      if (this.#placed >= this.policy.placementsPerPlan) {
        made.more = true;
        return made;
      }
      this.#step(next, order);
    }
    view.open.clear();
    return made;
  }

  #wake(): void {
    const { view, made, nowMs } = this;
    for (const pending of view.sleeping) {
      const next = pending.queue.mature(nowMs);
      if (next === null) view.sleeping.delete(pending);
      else if (made.nextAtMs === null || next < made.nextAtMs) made.nextAtMs = next;
      if (pending.told === '' && pending.queue.peek()) view.open.add(pending);
    }
  }

  #unblock(): void {
    const { view } = this;
    for (const shape of view.shapes.afterFreeing(view.fleet, view.freed)) {
      for (const pending of shape.classes) if (pending.waiting > 0) view.open.add(pending);
    }
    view.freed.clear();
  }

  #step(pending: PendingClass, order: Order): void {
    const { view } = this;
    const members = pending.queue.peek();
    if (!members) {
      view.open.delete(pending);
      order.drop();
      return;
    }
    const { request, shape } = pending;
    const job = (members[0] as PendingTask).job;
    if (request.arrayLimit > 0 && view.claimsOf(job).size >= request.arrayLimit) {
      pending.queue.setAside(job);
      order.advance();
      return;
    }
    const spots = shape.blocked ? null : this.#place(pending, members.length);
    if (!spots) {
      view.shapes.block(shape);
      view.open.delete(pending);
      order.drop();
      this.#tellMisfit(pending);
      return;
    }
    this.#book(pending, members, spots);
    order.advance();
  }

  #place({ request }: PendingClass, size: number): Spot[] | null {
    const { fleet } = this.view;
    if (size > 1) return fleet.placeGang(request, size);
    const spot = fleet.place(request);
    return spot && [spot];
  }

  #book(pending: PendingClass, members: PendingTask[], spots: Spot[]): void {
    const { request } = pending;
    const { job, round } = members[0] as PendingTask;
    const tasks = members.map((task, at) => {
      const spot = spots[at] as Spot;
      const uid = attemptUid(task.task, task.attempts + 1, this.#randomHex());
      const claim = claimOf(uid, spot.worker, request.resources, spot);
      this.view.book({ claim, job, classKey: request.key, sinceMs: this.nowMs });
      return { task: task.task, version: task.version, claim };
    });
    pending.queue.skip();
    if (pending.told !== '') this.made.cleared.push(request.key);
    pending.told = '';
    this.made.placements.push({ job, round, tasks });
    this.#placed += tasks.length;
  }

  /** Workers have changed: says anew of what is blocked why, as far as the looks go. */
  #tellAgain(): void {
    const { view } = this;
    if (!view.recomposed) return;
    view.recomposed = false;
    for (const shape of view.shapes.blocked()) {
      if (this.#looks >= LOOKS_PER_PLAN) return;
      for (const pending of shape.classes) if (pending.told !== '') this.#tellMisfit(pending);
    }
  }

  #tellMisfit(pending: PendingClass): void {
    const { view } = this;
    let why = this.#misfits.get(pending.shape);
    if (!why) {
      const affordable = this.#looks < LOOKS_PER_PLAN;
      if (!affordable && pending.told !== '') return;
      why = affordable ? explainMisfit(view, pending.request) : noRoom(view);
      if (affordable) this.#misfits.set(pending.shape, why);
      this.#looks += view.fleet.size;
    }
    this.#tell(pending, why);
  }

  #tell(pending: PendingClass, why: Explanation): void {
    if (pending.told === why.sentence) return;
    pending.told = why.sentence;
    this.made.waiting.push({ classKey: pending.request.key, why });
  }
}
