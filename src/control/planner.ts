/** The planner: keeps its own copy of what it plans over, so that it can live on another thread. */
import { DEFAULT_POLICY, plan, type Plan, type SchedulePolicy } from '../core/schedule/plan.ts';
import { PlannerView, type PlannerDeltas } from '../core/schedule/view.ts';
import type { Random } from '../lib/random.ts';

export interface Planner {
  /** Deltas since the last call, in; placements to try, out. */
  plan(deltas: PlannerDeltas, nowMs: number): Promise<Plan>;
}

/** 96 bits: nobody guesses an attempt's uid. */
const UID_RANDOM_BYTES = 12;

/** Nobody applies preemptions yet. */
const POLICY: SchedulePolicy = { ...DEFAULT_POLICY, preemption: false };

export function createPlanner(random: Random, policy: SchedulePolicy = POLICY): Planner {
  const view = new PlannerView();
  return {
    async plan(deltas, nowMs) {
      view.update(deltas);
      return plan(view, nowMs, () => random.hex(UID_RANDOM_BYTES), policy);
    },
  };
}
