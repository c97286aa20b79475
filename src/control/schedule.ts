/** The schedule loop: feeds the planner what changed and applies what it plans. */
import type { Explanation } from '../core/explain.ts';
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
  /** Why the head of each class waits, for `queue` and `job`. */
  reasons: Map<string, Explanation>;
  placed: (tasks: number, staleTasks: number) => void;
}

export function createScheduleStep(options: ScheduleOptions): () => Promise<void> {
  const { state, planner, mutate, clock, reasons } = options;
  let wakeAt: Timer | null = null;
  return async () => {
    const plan = await planner.plan(state.deltas.take(state, clock.now()), clock.now());
    for (const classKey of plan.cleared) reasons.delete(classKey);
    for (const { classKey, why } of plan.waiting) reasons.set(classKey, why);
    let placed = 0;
    let stale = 0;
    for (const placement of plan.placements) {
      const result = mutate({ kind: 'assign', ...placement });
      if (result.kind === 'done') {
        placed += placement.tasks.length;
        continue;
      }
      stale += placement.tasks.length;
      // The planner has booked it in its copy; hearing the truth again undoes that.
      for (const { task, claim } of placement.tasks) {
        const found = state.task(task);
        if (found) state.deltas.tasks.add(found.task);
        state.deltas.claims.add(claim.owner);
      }
    }
    options.placed(placed, stale);
    if (plan.more || stale > 0) options.hint();
    wakeAt?.cancel();
    if (plan.nextAtMs !== null) {
      wakeAt = clock.setTimer(Math.max(1, plan.nextAtMs - clock.now()), options.hint);
    }
  };
}
