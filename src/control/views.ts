/** What callers see: from the live state while a thing lives, from its row once it has ended. */
import { jobState, type TaskCounts } from '../core/lifecycle/job.ts';
import { taskId, type JobId } from '../model/ids.ts';
import type { Job } from '../model/job.ts';
import { specOf } from '../store/decode.ts';
import type { Task } from '../model/task.ts';
import type { Token } from '../model/token.ts';
import type { TokenView, WorkerView } from '../protocol/fleet.ts';
import type {
  AttemptView,
  CheckpointView,
  EventView,
  JobView,
  TaskView,
} from '../protocol/jobs.ts';
import { endingOf, type LiveJob, type LiveWorker } from '../state/live.ts';
import type { AttemptRow, CheckpointRow, EventRow, JobRow } from '../store/database.ts';

export function liveJobView(live: LiveJob, waitReason: string | undefined): JobView {
  const { job, counts } = live;
  const ending = endingOf(live);
  const ended = job.endedAtMs !== null;
  return {
    ...common(job),
    state: jobState(counts),
    reason: ended ? ending.reason : liveReason(live, waitReason),
    startedAtMs: ending.startedAtMs,
    endedAtMs: job.endedAtMs,
    exitCode: ended ? ending.exitCode : null,
    tasks: countsView(counts),
    spec: job.spec,
  };
}

function liveReason(live: LiveJob, waitReason: string | undefined): string {
  if (live.job.cancelRequestedAtMs !== null) return 'stopping: cancel was asked for';
  if (live.counts.PENDING === 0) return '';
  if (live.waitsFor) return `waits for ${[...live.waitsFor].join(', ')} to end`;
  const retrying = live.tasks.find((task) => task.state === 'PENDING' && task.reason)?.reason;
  return [retrying, waitReason].filter(Boolean).join('; ') || 'waiting to be placed';
}

function common(job: Job) {
  return {
    id: job.id,
    name: job.spec.name,
    kind: job.kind,
    cluster: job.cluster,
    tenant: job.tenant,
    owner: job.owner,
    submittingPrincipal: job.submittingPrincipal,
    priority: job.spec.priority,
    pool: job.spec.pool,
    createdAtMs: job.createdAtMs,
    cancelRequestedAtMs: job.cancelRequestedAtMs,
    parent: job.parent,
    root: job.root,
  };
}

function countsView(counts: TaskCounts): JobView['tasks'] {
  let total = 0;
  for (const count of Object.values(counts)) total += count;
  return {
    total,
    pending: counts.PENDING,
    running: counts.ASSIGNED + counts.RUNNING,
    succeeded: counts.SUCCEEDED,
    failed: counts.FAILED,
    cancelled: counts.CANCELLED,
    unschedulable: counts.UNSCHEDULABLE,
  };
}

export function endedJobView(row: JobRow): JobView {
  const spec = specOf(row);
  return {
    id: row.id,
    name: row.name,
    state: (row.end_state ?? 'PENDING') as JobView['state'],
    reason: row.end_reason ?? '',
    kind: row.kind as JobView['kind'],
    cluster: row.cluster,
    tenant: row.tenant,
    owner: row.owner,
    submittingPrincipal: row.submitting_principal,
    priority: spec.priority,
    pool: spec.pool,
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
    cancelRequestedAtMs: row.cancel_requested_at_ms,
    parent: row.parent,
    root: row.root,
    exitCode: row.exit_code,
    tasks: {
      total: row.task_count,
      pending: 0,
      running: 0,
      succeeded: row.succeeded ?? 0,
      failed: row.failed ?? 0,
      cancelled: row.cancelled ?? 0,
      unschedulable: row.unschedulable ?? 0,
    },
    spec,
  };
}

export function taskView(task: Task, worker: string | null): TaskView {
  return {
    id: task.id,
    job: task.job,
    index: task.index,
    state: task.state,
    reason: task.reason,
    attempts: task.attempts,
    failures: task.failures,
    interruptions: task.interruptions,
    exitCode: task.exitCode,
    worker,
    createdAtMs: task.createdAtMs,
    startedAtMs: task.startedAtMs,
    endedAtMs: task.endedAtMs,
  };
}

export function attemptView(row: AttemptRow): AttemptView {
  return {
    uid: row.uid,
    task: taskId(row.job as JobId, row.task_index),
    n: row.n,
    round: row.round,
    worker: row.worker,
    state: row.state as AttemptView['state'],
    cause: row.cause as AttemptView['cause'],
    exitCode: row.exit_code,
    signal: row.signal,
    message: row.message,
    assignedAtMs: row.assigned_at_ms,
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
    facts: JSON.parse(row.facts) as AttemptView['facts'],
    result: row.result,
    resultBytes: row.result_bytes,
    priceMicros: row.price_micros,
    chargedMicros: row.charged_micros,
  };
}

export function checkpointView(row: CheckpointRow): CheckpointView {
  return {
    task: taskId(row.job as JobId, row.task_index),
    n: row.n,
    attempt: row.attempt,
    manifest: row.manifest,
    bytes: row.bytes,
    files: row.files,
    reason: row.reason,
    createdAtMs: row.created_at_ms,
  };
}

export function eventView(row: EventRow): EventView {
  return {
    epoch: row.epoch,
    seq: row.seq,
    atMs: row.at_ms,
    kind: row.kind as EventView['kind'],
    job: row.job,
    task: row.task,
    attempt: row.attempt,
    worker: row.worker,
    data: JSON.parse(row.data) as EventView['data'],
    hash: row.hash,
  };
}

export function workerView(live: LiveWorker, lastSeenAtMs: number | null): WorkerView {
  const { worker, capacity } = live;
  return {
    id: worker.id,
    name: worker.name,
    pool: worker.pool,
    state: worker.state,
    draining: worker.draining,
    address: worker.address,
    network: worker.network,
    attributes: worker.attributes,
    agentVersion: worker.agentVersion,
    joinedAtMs: worker.joinedAtMs,
    lastSeenAtMs,
    attempts: live.attempts.size,
    total: {
      cpuMillis: worker.resources.cpuMillis,
      memoryBytes: worker.resources.memoryBytes,
      devices: worker.resources.devices.length,
    },
    free: {
      cpuMillis: capacity.cpuFree,
      memoryBytes: capacity.memoryFree,
      devices: capacity.devicesFree(),
    },
    devices: worker.resources.devices,
    host: worker.host,
    instance: worker.instance,
    endsAtMs: worker.endsAtMs,
    problems: worker.problems,
  };
}

export function tokenView(token: Token): TokenView {
  const { hash: _hash, ...shown } = token;
  return shown;
}
