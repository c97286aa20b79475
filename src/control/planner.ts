/** The planner: keeps its own copy of what it plans over, so that it can live on another thread. */
import { planFirstFit, type Plan } from '../core/schedule/firstFit.ts';
import { PlannerView, type PlannerDeltas } from '../core/schedule/view.ts';
import type { Random } from '../lib/random.ts';

export interface Planner {
  /** Deltas since the last call, in; placements to try, out. */
  plan(deltas: PlannerDeltas, nowMs: number): Promise<Plan>;
}

/** 96 bits: nobody guesses an attempt's uid. */
const UID_RANDOM_BYTES = 12;

export function createPlanner(random: Random): Planner {
  const view = new PlannerView();
  return {
    async plan(deltas, nowMs) {
      view.update(deltas);
      return planFirstFit(view, nowMs, () => random.hex(UID_RANDOM_BYTES));
    },
  };
}
