/**
 * From what changed in the state to the rows of one batch. Runs on the hot path: plain arrays, no
 * objects.
 */
import { NO_FACTS, type Attempt } from '../model/attempt.ts';
import type { Checkpoint } from '../model/checkpoint.ts';
import type { Claim } from '../model/claim.ts';
import type { DataSet } from '../model/dataSet.ts';
import type { Event } from '../model/event.ts';
import type { Job } from '../model/job.ts';
import type { Task } from '../model/task.ts';
import type { Token } from '../model/token.ts';
import { indexOfTask } from '../model/ids.ts';
import { packSpec } from '../model/spec.ts';
import type { Changes, JobEnding } from '../state/changes.ts';
import type { KeyedSubmission } from '../state/live.ts';
import type { Value, WriteBatch } from './contract.ts';
import { encodeDownstream } from './downstreamRows.ts';
import { encodeMoney } from './encodeMoney.ts';
import { encodeMachines } from './machineRows.ts';
import { encodeNotices } from './noticeRows.ts';
import { encodePeople } from './peopleRows.ts';
import { nothing, split } from './rows.ts';

export function encodeBatch(changes: Changes, epoch: number, seq: number): WriteBatch {
  const tables: WriteBatch['tables'] = {};
  if (changes.jobs.size > 0) {
    tables.jobs = split(
      changes.jobs,
      jobKey,
      jobFixed,
      (to, job) => jobMutable(to, job, changes.endings.get(job)),
      untouched,
    );
  }
  if (changes.submissions.length > 0) {
    const inserts: Value[] = [];
    for (const submission of changes.submissions) submissionRow(inserts, submission);
    tables.submissions = { fresh: [], inserts, updates: [], deletes: [] };
  }
  if (changes.tasks.size > 0) {
    tables.tasks = split(changes.tasks, taskKey, taskFixed, taskMutable);
  }
  if (changes.attempts.size > 0) {
    tables.attempts = split(changes.attempts, attemptKey, attemptFixed, attemptMutable, untouched);
  }
  if (changes.checkpoints.size > 0) {
    tables.checkpoints = split(changes.checkpoints, checkpointKey, checkpointFixed, nothing);
  }
  if (changes.claims.size > 0) {
    tables.claims = split(changes.claims, claimKey, claimFixed, (to, claim) =>
      to.push(claim.state),
    );
  }
  if (changes.tokens.size > 0) {
    tables.tokens = split(changes.tokens, byId, tokenFixed, (to, token) =>
      to.push(token.revokedAtMs, token.lastUsedAtMs),
    );
  }
  if (changes.dataSets.size > 0) {
    tables.data_sets = split(changes.dataSets, dataSetKey, nothing, dataSetMutable);
  }
  encodeDownstream(changes, tables);
  encodeMachines(changes, tables);
  encodeMoney(changes, tables);
  encodeNotices(changes, tables);
  encodePeople(changes, tables);
  if (changes.events.length > 0) {
    const inserts: Value[] = [];
    for (const event of changes.events) eventRow(inserts, event);
    tables.events = { fresh: [], inserts, updates: [], deletes: [] };
  }
  return { epoch, seq, tables };
}

function jobKey(to: Value[], job: Job): void {
  to.push(job.tenant, job.id);
}

function jobFixed(to: Value[], job: Job): void {
  to.push(
    job.cluster,
    job.owner,
    job.submittingPrincipal,
    job.kind,
    job.spec.name,
    packSpec(job.spec),
    job.taskCount,
    job.createdAtMs,
  );
}

function jobMutable(to: Value[], job: Job, ending: JobEnding | undefined): void {
  to.push(
    job.round,
    job.cancelRequestedAtMs,
    job.cancelledBy,
    job.endedAtMs,
    job.spentMicros,
    job.version,
    ending?.state ?? null,
    ending?.reason ?? null,
    ending?.exitCode ?? null,
    ending?.startedAtMs ?? null,
    ending?.succeeded ?? null,
    ending?.failed ?? null,
    ending?.cancelled ?? null,
    ending?.unschedulable ?? null,
    job.parent,
    job.root,
    job.newPriority,
  );
}

function submissionRow(to: Value[], { tenant, key, entry }: KeyedSubmission): void {
  const { createdAtMs, ids, bodyHash } = entry;
  to.push(createdAtMs, ids[0] ?? '', tenant, key, bodyHash, JSON.stringify(ids));
}

function taskKey(to: Value[], task: Task): void {
  to.push(task.job, task.index);
}
function taskFixed(to: Value[], task: Task): void {
  to.push(task.cluster, task.tenant, task.createdAtMs);
}

function taskMutable(to: Value[], task: Task): void {
  to.push(
    task.state,
    task.attempts,
    task.failures,
    task.interruptions,
    task.roundDone ? 1 : 0,
    task.reason,
    task.exitCode,
    task.notBeforeMs,
    task.startedAtMs,
    task.endedAtMs,
    task.version,
  );
}

function attemptKey(to: Value[], attempt: Attempt): void {
  to.push(attempt.job, indexOfTask(attempt.task), attempt.n);
}

function attemptFixed(to: Value[], attempt: Attempt): void {
  to.push(
    attempt.uid,
    attempt.tenant,
    attempt.round,
    attempt.worker,
    attempt.assignedAtMs,
    attempt.priceMicros,
  );
}

function attemptMutable(to: Value[], attempt: Attempt): void {
  to.push(
    attempt.state,
    attempt.stopCause,
    attempt.cause,
    attempt.exitCode,
    attempt.signal,
    attempt.message,
    attempt.startedAtMs,
    attempt.endedAtMs,
    attempt.stdoutBytes,
    attempt.stderrBytes,
    attempt.charges,
    attempt.chargedMicros,
    attempt.chargedDeviceMs,
    attempt.facts === NO_FACTS ? '{}' : JSON.stringify(attempt.facts),
    attempt.result,
    attempt.resultBytes,
    attempt.version,
  );
}

function checkpointKey(to: Value[], checkpoint: Checkpoint): void {
  to.push(checkpoint.job, checkpoint.index, checkpoint.n);
}

function checkpointFixed(to: Value[], checkpoint: Checkpoint): void {
  const { attempt, tenant, manifest, bytes, files, reason } = checkpoint;
  const { takenBootMs, createdAtMs } = checkpoint;
  to.push(attempt, tenant, manifest, bytes, files, reason, takenBootMs, createdAtMs);
}

function dataSetKey(to: Value[], { tenant, name }: DataSet): void {
  to.push(tenant, name);
}

function dataSetMutable(to: Value[], one: DataSet): void {
  to.push(one.version, one.kind, one.hash, one.bytes, one.files, one.createdAtMs, one.createdBy);
}

function claimKey(to: Value[], claim: Claim): void {
  to.push(claim.owner);
}

function claimFixed(to: Value[], claim: Claim): void {
  to.push(
    claim.worker,
    claim.cpuMillis,
    claim.memoryBytes,
    JSON.stringify(claim.devices),
    claim.share,
    JSON.stringify(claim.ports),
  );
}

function tokenFixed(to: Value[], token: Token): void {
  to.push(
    token.kind,
    token.name,
    token.tenant,
    token.user,
    JSON.stringify(token.scopes),
    token.hash,
    token.pool,
    token.maxLiveWorkers,
    token.createdAtMs,
    token.expiresAtMs,
    token.attempt,
  );
}

function eventRow(to: Value[], event: Event): void {
  to.push(
    event.epoch,
    event.seq,
    event.atMs,
    event.kind,
    event.tenant,
    event.job,
    event.task,
    event.attempt,
    event.worker,
    JSON.stringify(event.data),
    event.hash,
  );
}

/** Every change raises the version, so what has its first one has the defaults of the schema. */
function untouched(row: { version: number }): boolean {
  return row.version === 1;
}

function byId(to: Value[], row: { id: string }): void {
  to.push(row.id);
}
