/** What planner tests are fed: workers, requests and tasks by name. */
import type {
  PendingTask,
  PlacementRequest,
  PlannerDeltas,
  PlannerWorker,
} from '../../src/core/schedule/view.ts';
import { taskId, type JobId, type WorkerId } from '../../src/model/ids.ts';

export const NOTHING: PlannerDeltas = {
  requests: [],
  pending: [],
  notPending: [],
  workers: [],
  workersGone: [],
  claims: [],
  claimsGone: [],
};

export function worker(id: string, more: Partial<PlannerWorker> = {}): PlannerWorker {
  return {
    id: id as WorkerId,
    pool: 'default',
    network: 'lan',
    resources: { cpuMillis: 4000, memoryBytes: 4096, devices: [], portRange: [100, 199] },
    open: true,
    ...more,
  };
}

export function wanting(
  cpuMillis: number,
  more: Partial<Omit<PlacementRequest, 'resources'>> = {},
): PlacementRequest {
  const { pool = '', band = 2, gangSize = 1 } = more;
  const key = more.key ?? `${band}|${pool}|${gangSize}|${cpuMillis}`;
  return {
    key,
    resources: { cpuMillis, memoryBytes: 0, device: null, ports: 0 },
    pool,
    band,
    gangSize,
  };
}

export function waiting(
  { key }: PlacementRequest,
  job: string,
  index = 0,
  more: Partial<PendingTask> = {},
): PendingTask {
  return {
    task: taskId(job as JobId, index),
    job: job as JobId,
    index,
    version: 1,
    classKey: key,
    round: 0,
    attempts: 0,
    notBeforeMs: 0,
    ...more,
  };
}
