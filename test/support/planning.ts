/** What planner tests are fed: workers, requests and tasks by name. */
import type { PlacementRequest, PlannerWorker } from '../../src/core/placement/request.ts';
import type { PendingTask, PlannerClaim, PlannerDeltas } from '../../src/core/schedule/view.ts';
import type { Claim } from '../../src/model/claim.ts';
import { taskId, type JobId, type WorkerId } from '../../src/model/ids.ts';
import { OPEN_TERMS, PLAIN_PLACEMENT } from '../../src/model/placement.ts';

export const NOTHING: PlannerDeltas = {
  requests: [],
  pending: [],
  notPending: [],
  workers: [],
  workersGone: [],
  claims: [],
  claimsGone: [],
  accounts: [],
};

export function worker(id: string, more: Partial<PlannerWorker> = {}): PlannerWorker {
  return {
    id: id as WorkerId,
    name: id,
    attributes: {},
    terms: OPEN_TERMS,
    deviceHourMicros: 0,
    cpuHourMicros: 0,
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
    tenant: 't',
    user: 'u',
    resources: { cpuMillis, memoryBytes: 0, device: null, ports: 0 },
    placement: PLAIN_PLACEMENT,
    pool,
    band,
    gangSize,
    arrayLimit: 0,
    timeLimitMs: 0,
    graceMs: 0,
    ...more,
  };
}

/** The claim of a task of job `j`, as a planner hears of it. */
export function held(claim: Claim, more: Partial<PlannerClaim> = {}): PlannerClaim {
  return { claim, job: 'j' as JobId, classKey: '', sinceMs: 0, ...more };
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
    sinceMs: 0,
    ...more,
  };
}
