/** The planner: keeps its own copy of what it plans over, so that it can live on another thread. */
import type { Explanation } from '../core/explain.ts';
import { queuePosition, type QueuePosition } from '../core/explain/position.ts';
import { predictStart, previewPlacement, type PoolPreview } from '../core/explain/preview.ts';
import { explainJob } from '../core/explain/why.ts';
import type { Demand } from '../core/capacity/capacity.ts';
import type { Price } from '../core/money.ts';
import type { PlacementRequest } from '../core/placement/request.ts';
import { demandOf } from '../core/schedule/demand.ts';
import { DEFAULT_POLICY, plan, type Plan, type SchedulePolicy } from '../core/schedule/plan.ts';
import { PlannerView, type PlannerDeltas } from '../core/schedule/view.ts';
import type { Random } from '../lib/random.ts';
import type { JobId } from '../model/ids.ts';

export interface Planner {
  /** Deltas since the last call, in; placements to try, out. */
  plan(deltas: PlannerDeltas, nowMs: number): Promise<Plan>;
  /** Why a job waits, as of the last plan; null when nothing of it waits. */
  explain(job: JobId, request: PlacementRequest, nowMs: number): Promise<PlannerWhy | null>;
  /** What fits no worker there is, as of the last plan, at these prices of pools. */
  demand(prices: ReadonlyMap<string, Price>): Promise<Demand[]>;
  /** Where something would go if it were submitted now. */
  preview(
    request: PlacementRequest,
    nowMs: number,
    inputs?: readonly string[],
  ): Promise<PoolPreview[]>;
}

export interface PlannerWhy {
  why: Explanation;
  position: QueuePosition | null;
  predictedStartAtMs: number | null;
}

/** 96 bits: nobody guesses an attempt's uid. */
export const UID_RANDOM_BYTES = 12;

export function createPlanner(random: Random, policy: SchedulePolicy = DEFAULT_POLICY): Planner {
  const view = new PlannerView();
  return {
    async plan(deltas, nowMs) {
      view.update(deltas);
      return plan(view, nowMs, () => random.hex(UID_RANDOM_BYTES), policy);
    },
    async explain(job, request, nowMs) {
      const why = explainJob(view, job, nowMs);
      if (!why) return null;
      const soonest = why.reservation?.atMs ?? predictStart(view, request, nowMs)?.atMs ?? null;
      const predictedStartAtMs = why.quota?.mode === 'hard' ? null : soonest;
      return { why, position: queuePosition(view, job, nowMs, policy), predictedStartAtMs };
    },
    async demand(prices) {
      return demandOf(view, prices);
    },
    async preview(request, nowMs, inputs) {
      return previewPlacement(view, request, nowMs, inputs);
    },
  };
}
