/**
 * One plan: whose turn it is gets the best place there is, until nothing that waits fits or the
 * plan is long enough. What is planned is booked in the view at once.
 */
import { DEFAULT_HALF_LIFE_MS } from '../usage.ts';
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, JobId, TaskId } from '../../model/ids.ts';
import type { Explanation } from '../explain.ts';
import type { PendingClass } from './classes.ts';
import { settleNominations } from './nominate.ts';
import { Order } from './order.ts';
import { Planning } from './planning.ts';
import { step } from './step.ts';
import type { PlannerView } from './view.ts';

export interface SchedulePolicy {
  /** Past use counts half after this long. */
  halfLifeMs: number;
  /** What has waited longer than this is not overtaken in its band. */
  ageingMs: number;
  /** Whether work that ends in time may use what is kept for other work meanwhile. */
  backfill: boolean;
  preemption: boolean;
  /** A plan stays short so that its mutations are applied while they are fresh. */
  placementsPerPlan: number;
}

export const DEFAULT_POLICY: SchedulePolicy = {
  halfLifeMs: DEFAULT_HALF_LIFE_MS,
  ageingMs: 24 * 3_600_000,
  backfill: true,
  preemption: true,
  placementsPerPlan: 2000,
};

/** One task, or a whole gang: all or none. */
export interface Placement {
  job: JobId;
  round: number;
  tasks: { task: TaskId; version: number; claim: Claim }[];
}

/** To be applied in the order of these fields. */
export interface Plan {
  /** Nominations not wanted any more. */
  withdrawals: { owner: AttemptUid; reason: string }[];
  /** Claims that are HELD. A nomination that came true keeps its owner and its place. */
  placements: Placement[];
  /** Claims that are NOMINATED, on top of those of their victims. */
  preemptions: (Placement & { victims: { uid: AttemptUid }[]; reason: string })[];
  /** Classes that wait no longer: placed, or left by all. */
  cleared: string[];
  /** Why the head of a class waits, where that has changed. */
  waiting: { classKey: string; why: Explanation }[];
  /** When something that waits for a time becomes ready; null: nothing does. */
  nextAtMs: number | null;
  /** There is more to plan at once. */
  more: boolean;
}

/** Timers do not count further. */
const LONGEST_WAIT_MS = 24 * 3_600_000;

export function plan(
  view: PlannerView,
  nowMs: number,
  randomHex: () => string,
  policy: SchedulePolicy,
): Plan {
  const planning = new Planning(view, nowMs, randomHex, policy);
  planning.made.cleared.push(...view.classes.emptied.splice(0));
  wake(planning);
  planning.reserving.check();
  settleNominations(planning);
  unblock(planning);
  planning.telling.again();
  if (view.classes.open.size > 0) placeAll(planning);
  planning.nextAt(view.ageing.nextAtMs());
  const { made } = planning;
  if (made.nextAtMs !== null) made.nextAtMs = Math.min(made.nextAtMs, nowMs + LONGEST_WAIT_MS);
  return made;
}

/** Back-offs that are over, and what has waited too long by now. */
function wake(planning: Planning): void {
  const { view, nowMs } = planning;
  const { sleeping, open } = view.classes;
  for (const pending of sleeping) {
    const next = pending.queue.mature(nowMs);
    if (next === null) sleeping.delete(pending);
    planning.nextAt(next);
    // Where it was told of a lack of room that still lasts, one more of it changes nothing.
    const inVain = pending.told !== '' && pending.shape.blocked;
    if (!inVain && pending.queue.peek()) open.add(pending);
  }
  for (const pending of view.ageing.due(nowMs)) open.add(pending);
}

/** What was freed may let go on what did not fit. */
function unblock({ view, reserving }: Planning): void {
  const { classes, freed, fleet, reservations, frugal } = view;
  if (freed.size === 0) return;
  // What is kept for lower bands is room to the higher ones.
  reserving.liftYoung();
  for (const shape of classes.shapes.afterFreeing(fleet, freed)) {
    for (const pending of shape.classes) if (pending.waiting > 0) classes.open.add(pending);
  }
  for (const kept of reservations.values()) reservations.lay(kept);
  // What is kept for somebody is not free for the others of its kind.
  for (const { of } of reservations.values()) classes.open.add(of);
  for (const pending of frugal) if (pending.waiting > 0) classes.open.add(pending);
  frugal.clear();
  freed.clear();
}

function placeAll(planning: Planning): void {
  const { view, policy, nowMs, made, reserving } = planning;
  const { halfLifeMs, ageingMs, placementsPerPlan } = policy;
  const totals = view.fleet.totals();
  const order = new Order(view.classes.open, { nowMs, halfLifeMs, ageingMs, totals });
  reserving.liftYoung();
  let band = -1;
  let next: PendingClass | null;
  while ((next = order.first())) {
    if (order.band !== band) reserving.layUpTo((band = order.band));
    if (planning.placed >= placementsPerPlan) {
      made.more = true;
      break;
    }
    step(planning, order, next);
  }
  reserving.layUpTo(Number.POSITIVE_INFINITY);
  if (!next) view.classes.open.clear();
  for (const pending of planning.again) view.classes.open.add(pending);
}
