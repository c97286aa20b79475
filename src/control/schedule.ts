/** The schedule loop: feeds the planner what changed and applies what it plans. */
import type { Explanation } from '../core/explain.ts';
import type { Placement, Plan } from '../core/schedule/plan.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import type { State } from '../state/state.ts';
import type { Mutate } from './mutate.ts';
import type { Planner } from './planner.ts';

export interface ScheduleOptions {
  state: State;
  planner: Planner;
  mutate: Mutate;
  clock: Clock;
  hint: () => void;
  /** Why the head of each class waits. */
  reasons: Map<string, Explanation>;
  placed: (tasks: number, staleTasks: number) => void;
}

/** Plans refused whole, one after another, before the next waits for the loop's period. */
const STALE_PLANS = 3;

export function createScheduleStep(options: ScheduleOptions): () => Promise<void> {
  const { state, planner, mutate, clock, reasons } = options;
  let wakeAt: Timer | null = null;
  let stalePlans = 0;
  return async () => {
    const nowMs = clock.now();
    const plan = await planner.plan(state.deltas.take(state, nowMs), nowMs);
    for (const classKey of plan.cleared) reasons.delete(classKey);
    for (const { classKey, why } of plan.waiting) reasons.set(classKey, why);
    const { placed, stale } = applyPlan(state, mutate, plan);
    options.placed(placed, stale);
    // A planner that sees what the state does not must not keep the processor busy.
    stalePlans = stale > 0 && placed === 0 ? stalePlans + 1 : 0;
    if (plan.more || (stale > 0 && stalePlans <= STALE_PLANS)) options.hint();
    wakeAt?.cancel();
    if (plan.nextAtMs !== null) {
      wakeAt = clock.setTimer(Math.max(1, plan.nextAtMs - clock.now()), options.hint);
    }
  };
}

function applyPlan(state: State, mutate: Mutate, plan: Plan): { placed: number; stale: number } {
  let placed = 0;
  let stale = 0;
  for (const { owner, reason } of plan.withdrawals) {
    const { kind } = mutate({ kind: 'withdraw', owner, reason });
    if (kind !== 'done') state.deltas.claims.add(owner);
  }
  for (const placement of plan.placements) {
    if (mutate({ kind: 'assign', ...placement }).kind === 'done') placed += placement.tasks.length;
    else stale += undo(state, placement);
  }
  for (const { victims, ...preemption } of plan.preemptions) {
    const { kind } = mutate({ kind: 'preempt', victims, ...preemption });
    if (kind === 'done') continue;
    stale += undo(state, preemption);
    for (const { uid } of victims) state.deltas.claims.add(uid);
  }
  return { placed, stale };
}

/** The planner has booked it in its copy; hearing the truth again undoes that. */
function undo(state: State, { tasks }: Placement): number {
  for (const { task, claim } of tasks) {
    const found = state.task(task);
    if (found) state.deltas.tasks.add(found.task);
    state.deltas.claims.add(claim.owner);
    const nominated = state.nominations.get(task);
    if (nominated) state.deltas.claims.add(nominated.claim.owner);
  }
  return tasks.length;
}
