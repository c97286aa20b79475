/** What planner tests are fed: workers, requests and tasks by name. */
import type { PlacementRequest, PlannerWorker } from '../../src/core/placement/request.ts';
import {
  DEFAULT_POLICY,
  plan,
  type Plan,
  type SchedulePolicy,
} from '../../src/core/schedule/plan.ts';
import {
  PlannerView,
  type PendingTask,
  type PlannerAccount,
  type PlannerClaim,
  type PlannerDeltas,
} from '../../src/core/schedule/view.ts';
import type { Claim } from '../../src/model/claim.ts';
import { taskId, type AttemptUid, type JobId, type WorkerId } from '../../src/model/ids.ts';
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
    lasts: null,
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
    neededMs: 0,
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

export function account(tenant: string, more: Partial<PlannerAccount> = {}): PlannerAccount {
  return {
    tenant,
    user: '',
    weight: 1,
    deviceMillis: null,
    deviceMsLeft: null,
    microsLeft: null,
    mode: 'hard',
    usage: { cpuMillis: 0, memoryMiB: 0, deviceMillis: 0, asOfMs: 0 },
    ...more,
  };
}

export function viewOf(deltas: Partial<PlannerDeltas>): PlannerView {
  const view = new PlannerView();
  view.update({ ...NOTHING, ...deltas });
  return view;
}

let uids = 0;

export function planOf(
  view: PlannerView,
  nowMs = 1000,
  policy: Partial<SchedulePolicy> = {},
): Plan {
  return plan(view, nowMs, () => `ab${uids++}`, { ...DEFAULT_POLICY, ...policy });
}

/** `task>worker` of every placement, a gang's in one text. */
export function placed({ placements }: Pick<Plan, 'placements'>): string[] {
  return placements.map(({ tasks }) =>
    tasks.map(({ task, claim }) => `${task}>${claim.worker}`).join(' '),
  );
}

/** Why each class waits, as this plan says. */
export function told({ waiting }: Plan): Record<string, string> {
  return Object.fromEntries(waiting.map(({ classKey, why }) => [classKey, why.sentence]));
}

/** A worker with so many whole devices, a core and a gigabyte for each. */
export function gpus(id: string, count: number, more: Partial<PlannerWorker> = {}): PlannerWorker {
  const devices = Array.from({ length: count }, (_, index) => ({
    index,
    kind: 'gpu' as const,
    model: 'A100',
    memoryBytes: 2 ** 36,
  }));
  const resources = { cpuMillis: count * 1000, memoryBytes: count * 2 ** 30 };
  return worker(id, { resources: { ...resources, devices, portRange: [100, 199] }, ...more });
}

/** So many devices, with a core for each. */
export function wantingGpus(
  count: number,
  more: Partial<Omit<PlacementRequest, 'resources'>> = {},
): PlacementRequest {
  const { tenant = 't', user = 'u', band = 2, gangSize = 1, timeLimitMs = 0 } = more;
  const key = more.key ?? `${tenant}|${user}|${band}|${gangSize}|${count}g|${timeLimitMs}`;
  const request = wanting(count * 1000, { ...more, key });
  const device = { kind: 'gpu' as const, count, share: 1000, models: [], memoryBytes: 0 };
  return { ...request, resources: { ...request.resources, device } };
}

/** A claim of `count` devices, the first being `from`, of a task of that class. */
export function heldGpus(
  request: PlacementRequest,
  job: string,
  on: string,
  from = 0,
  more: Partial<PlannerClaim> & { index?: number; state?: Claim['state'] } = {},
): PlannerClaim {
  const { index = 0, state = 'HELD', ...rest } = more;
  const count = request.resources.device?.count ?? 0;
  const claim: Claim = {
    owner: `${job}.${index}.1.cd` as AttemptUid,
    worker: on as WorkerId,
    cpuMillis: request.resources.cpuMillis,
    memoryBytes: 0,
    devices: Array.from({ length: count }, (_, at) => from + at),
    share: 1000,
    ports: [],
    state,
  };
  return { claim, job: job as JobId, classKey: request.key, sinceMs: 0, ...rest };
}
