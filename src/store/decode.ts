/** From rows back to the state's entities, for the rebuild. */
import { NO_FACTS, type Attempt } from '../model/attempt.ts';
import type { Account } from '../model/account.ts';
import type { Budget } from '../model/budget.ts';
import type { DataSet } from '../model/dataSet.ts';
import type { Checkpoint } from '../model/checkpoint.ts';
import type { Claim } from '../model/claim.ts';
import { taskId, type JobId } from '../model/ids.ts';
import type { Job, JobSpec, Priority } from '../model/job.ts';
import { unpackSpec } from '../model/spec.ts';
import type { Task } from '../model/task.ts';
import type { Token } from '../model/token.ts';
import type { UsageDay } from '../model/usageDay.ts';
import type { AttemptRow, ClaimRow, JobRow, TaskRow, TokenRow } from './database.ts';
import type { AccountRow, BudgetRow, CheckpointRow, DataSetRow, UsageDayRow } from './database.ts';

export function decodeJob(row: JobRow): Job {
  return {
    id: row.id as Job['id'],
    cluster: row.cluster,
    tenant: row.tenant,
    owner: row.owner,
    submittingPrincipal: row.submitting_principal,
    kind: row.kind as Job['kind'],
    spec: specOf(row),
    taskCount: row.task_count,
    round: row.round,
    createdAtMs: row.created_at_ms,
    parent: row.parent as Job['parent'],
    root: row.root as Job['root'],
    cancelRequestedAtMs: row.cancel_requested_at_ms,
    cancelledBy: row.cancelled_by,
    endedAtMs: row.ended_at_ms,
    spentMicros: row.spent_micros,
    newPriority: row.priority as Job['newPriority'],
    version: row.version,
  };
}

/** As it is now: what was changed since it was submitted lies beside it. */
export function specOf(row: Pick<JobRow, 'spec' | 'priority'>): JobSpec {
  const spec = unpackSpec(row.spec);
  return row.priority === null ? spec : { ...spec, priority: row.priority as Priority };
}

export function decodeTask(row: TaskRow): Task {
  return {
    id: taskId(row.job as JobId, row.task_index),
    job: row.job as JobId,
    cluster: row.cluster,
    tenant: row.tenant,
    index: row.task_index,
    state: row.state as Task['state'],
    attempts: row.attempts,
    failures: row.failures,
    interruptions: row.interruptions,
    roundDone: row.round_done === 1,
    reason: row.reason,
    exitCode: row.exit_code,
    notBeforeMs: row.not_before_ms,
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
    version: row.version,
  };
}

export function decodeAttempt(row: AttemptRow): Attempt {
  return {
    uid: row.uid as Attempt['uid'],
    task: taskId(row.job as JobId, row.task_index),
    job: row.job as JobId,
    tenant: row.tenant,
    n: row.n,
    round: row.round,
    worker: row.worker as Attempt['worker'],
    state: row.state as Attempt['state'],
    stopCause: row.stop_cause as Attempt['stopCause'],
    cause: row.cause as Attempt['cause'],
    exitCode: row.exit_code,
    signal: row.signal,
    message: row.message,
    assignedAtMs: row.assigned_at_ms,
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
    stdoutBytes: row.stdout_bytes,
    stderrBytes: row.stderr_bytes,
    priceMicros: row.price_micros,
    charges: row.charges,
    chargedMicros: row.charged_micros,
    chargedDeviceMs: row.charged_device_ms,
    facts: row.facts === '{}' ? NO_FACTS : (JSON.parse(row.facts) as Attempt['facts']),
    result: row.result,
    resultBytes: row.result_bytes,
    version: row.version,
  };
}

export function decodeCheckpoint(row: CheckpointRow): Checkpoint {
  return {
    job: row.job as JobId,
    index: row.task_index,
    n: row.n,
    attempt: row.attempt as Checkpoint['attempt'],
    tenant: row.tenant,
    manifest: row.manifest,
    bytes: row.bytes,
    files: row.files,
    reason: row.reason,
    takenBootMs: row.taken_boot_ms,
    createdAtMs: row.created_at_ms,
  };
}

export function decodeClaim(row: ClaimRow): Claim {
  return {
    owner: row.owner as Claim['owner'],
    worker: row.worker as Claim['worker'],
    cpuMillis: row.cpu_millis,
    memoryBytes: row.memory_bytes,
    devices: JSON.parse(row.devices) as number[],
    share: row.share,
    ports: JSON.parse(row.ports) as number[],
    state: row.state as Claim['state'],
  };
}

export function decodeToken(row: TokenRow): Token {
  return {
    id: row.id as Token['id'],
    kind: row.kind as Token['kind'],
    name: row.name,
    tenant: row.tenant,
    user: row.user_name,
    scopes: JSON.parse(row.scopes) as Token['scopes'],
    hash: row.hash,
    pool: row.pool,
    maxLiveWorkers: row.max_live_workers,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    attempt: row.attempt as Token['attempt'],
    revokedAtMs: row.revoked_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
  };
}

export function decodeDataSet(row: DataSetRow): DataSet {
  const { tenant, name, version, hash, bytes, files } = row;
  return {
    ...{ tenant, name, version, hash, bytes, files },
    kind: row.kind as DataSet['kind'],
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
  };
}

export function decodeBudget(row: BudgetRow): Budget {
  return {
    tenant: row.tenant,
    user: row.user_name,
    weight: row.weight,
    deviceMillis: row.device_millis,
    deviceHoursPerDay: row.device_hours_per_day,
    deviceHoursPerMonth: row.device_hours_per_month,
    microsPerDay: row.micros_per_day,
    microsPerMonth: row.micros_per_month,
    mode: row.mode as Budget['mode'],
    atLimit: row.at_limit as Budget['atLimit'],
    version: row.version,
  };
}

export function decodeAccount(row: AccountRow): Account {
  return {
    tenant: row.tenant,
    user: row.user_name,
    usage: {
      cpuMillis: row.cpu_use,
      memoryMiB: row.memory_use,
      deviceMillis: row.device_use,
      asOfMs: row.as_of_ms,
    },
    day: row.day,
    dayMicros: row.day_micros,
    dayDeviceMs: row.day_device_ms,
    month: row.month,
    monthMicros: row.month_micros,
    monthDeviceMs: row.month_device_ms,
    told: row.told,
    version: row.version,
  };
}

export function decodeUsageDay(row: UsageDayRow): UsageDay {
  return {
    day: row.day,
    tenant: row.tenant,
    user: row.user_name,
    pool: row.pool,
    micros: row.micros,
    deviceMs: row.device_ms,
    cpuMs: row.cpu_ms,
    attempts: row.attempts,
    version: row.version,
  };
}
