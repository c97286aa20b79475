/** From what changed in the state to the rows of one batch. Runs on the hot path: plain arrays, no objects. */
import type { Attempt } from '../model/attempt.ts';
import type { Claim } from '../model/claim.ts';
import type { Event } from '../model/event.ts';
import type { Job } from '../model/job.ts';
import type { Task } from '../model/task.ts';
import type { Token } from '../model/token.ts';
import type { Worker } from '../model/worker.ts';
import { indexOfTask } from '../model/ids.ts';
import type { Changes, ClaimOperation, JobEnding } from '../state/changes.ts';
import type { TableWrites, Value, WriteBatch } from './contract.ts';

export function encodeBatch(changes: Changes, epoch: number, seq: number): WriteBatch {
  const tables: WriteBatch['tables'] = {};
  if (changes.jobs.size > 0) {
    tables.jobs = split(changes.jobs, jobKey, jobFixed, (job) =>
      jobMutable(job, changes.endings.get(job)),
    );
  }
  if (changes.tasks.size > 0) tables.tasks = split(changes.tasks, taskKey, taskFixed, taskMutable);
  if (changes.attempts.size > 0) {
    tables.attempts = split(changes.attempts, attemptKey, attemptFixed, attemptMutable);
  }
  if (changes.claims.size > 0) {
    tables.claims = split(changes.claims, claimKey, claimFixed, (claim) => [claim.state]);
  }
  if (changes.workers.size > 0) {
    tables.workers = split(changes.workers, (w) => [w.id], workerFixed, workerMutable);
  }
  if (changes.tokens.size > 0) {
    tables.tokens = split(
      changes.tokens,
      (t) => [t.id],
      tokenFixed,
      (t) => [t.revokedAtMs],
    );
  }
  if (changes.events.length > 0) {
    tables.events = { inserts: changes.events.map(eventRow), updates: [], deletes: [] };
  }
  return { epoch, seq, tables };
}

function split<Row>(
  rows: Map<Row, ClaimOperation>,
  key: (row: Row) => Value[],
  fixed: (row: Row) => Value[],
  mutable: (row: Row) => Value[],
): TableWrites {
  const writes: TableWrites = { inserts: [], updates: [], deletes: [] };
  for (const [row, operation] of rows) {
    if (operation === 'insert') writes.inserts.push(key(row).concat(fixed(row), mutable(row)));
    else if (operation === 'update') writes.updates.push(mutable(row).concat(key(row)));
    else writes.deletes.push(key(row));
  }
  return writes;
}

const jobKey = (job: Job): Value[] => [job.id];

function jobFixed(job: Job): Value[] {
  return [
    job.cluster,
    job.tenant,
    job.owner,
    job.submittingPrincipal,
    job.kind,
    job.spec.name,
    JSON.stringify(job.spec),
    job.taskCount,
    job.createdAtMs,
    job.idempotencyKey,
    job.bodyHash,
  ];
}

function jobMutable(job: Job, ending: JobEnding | undefined): Value[] {
  return [
    job.round,
    job.cancelRequestedAtMs,
    job.cancelledBy,
    job.endedAtMs,
    job.version,
    ending?.state ?? null,
    ending?.reason ?? null,
    ending?.exitCode ?? null,
    ending?.startedAtMs ?? null,
    ending?.succeeded ?? null,
    ending?.failed ?? null,
    ending?.cancelled ?? null,
    ending?.unschedulable ?? null,
  ];
}

const taskKey = (task: Task): Value[] => [task.job, task.index];
const taskFixed = (task: Task): Value[] => [task.cluster, task.tenant, task.createdAtMs];

function taskMutable(task: Task): Value[] {
  return [
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
  ];
}

const attemptKey = (attempt: Attempt): Value[] => [
  attempt.job,
  indexOfTask(attempt.task),
  attempt.n,
];

const attemptFixed = (attempt: Attempt): Value[] => [
  attempt.uid,
  attempt.tenant,
  attempt.round,
  attempt.worker,
  attempt.assignedAtMs,
];

function attemptMutable(attempt: Attempt): Value[] {
  return [
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
    attempt.version,
  ];
}

const claimKey = (claim: Claim): Value[] => [claim.owner];

const claimFixed = (claim: Claim): Value[] => [
  claim.worker,
  claim.cpuMillis,
  claim.memoryBytes,
  JSON.stringify(claim.devices),
  claim.share,
  JSON.stringify(claim.ports),
];

const workerFixed = (worker: Worker): Value[] => [worker.machine, worker.joinedAtMs];

function workerMutable(worker: Worker): Value[] {
  return [
    worker.name,
    worker.pool,
    worker.bootId,
    worker.address,
    worker.network,
    JSON.stringify(worker.resources),
    JSON.stringify(worker.attributes),
    worker.agentVersion,
    worker.state,
    worker.draining ? 1 : 0,
    worker.tokenHash,
    worker.joinToken,
    worker.endedAtMs,
    worker.version,
  ];
}

const tokenFixed = (token: Token): Value[] => [
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
];

const eventRow = (event: Event): Value[] => [
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
];
