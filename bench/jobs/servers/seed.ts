/**
 * Fills a store with jobs that have ended, before a controller opens it: the rows a job leaves
 * behind, by the production store's own encoding and writer, without the work of running them.
 */
import { Changes, type EventNote } from '../../../src/state/changes.ts';
import type { Attempt } from '../../../src/model/attempt.ts';
import {
  attemptUid,
  idMinter,
  taskId,
  type ClusterId,
  type JobId,
  type WorkerId,
} from '../../../src/model/ids.ts';
import type { Job, JobSpec } from '../../../src/model/job.ts';
import type { Task } from '../../../src/model/task.ts';
import { jobSpec } from '../../../src/protocol/jobSpec.ts';
import { openSqlite } from '../../../src/store/dialects/sqlite.ts';
import { encodeBatch } from '../../../src/store/encode.ts';
import { PAYLOAD } from '../support/workload.ts';

const DAY_MS = 86_400_000;
/** They ended over so many days, the last of them long enough ago to be of no account. */
const SPREAD_MS = 30 * DAY_MS;
const YOUNGEST_MS = 2 * DAY_MS;
const WAIT_MS = 40;
const RUN_MS = 60_000;
const JOBS_PER_COMMIT = 2000;
/** One in so many failed: those are found by an index of their own. */
const FAILED_EVERY = 50;
const STORE = { cacheBytes: 64 * 1024 * 1024, checkpointPages: 10_000 };
const TENANT = 'default';
const OWNER = 'admin';

interface Seeding {
  changes: Changes;
  epoch: number;
  seq: number;
  mint: (prefix: string) => string;
  worker: WorkerId;
  spec: JobSpec;
}

export async function seedEndedJobs(file: string, count: number): Promise<void> {
  const store = openSqlite({ file, ...STORE });
  try {
    const beganMs = Date.now() - SPREAD_MS - YOUNGEST_MS;
    const { cluster_id, epoch, seq } = await store.lead(beganMs, 'cseeded');
    const mint = idMinter(cluster_id as ClusterId, epoch);
    const worker = mint('w') as WorkerId;
    const spec = jobSpec.parse(PAYLOAD);
    const seeding: Seeding = { changes: new Changes(), epoch, seq, mint, worker, spec };
    for (let n = 1; n <= count; n++) {
      addEnded(seeding, n, beganMs + Math.floor((SPREAD_MS * n) / count));
      if (n % JOBS_PER_COMMIT !== 0 && n !== count) continue;
      await store.commit(encodeBatch(seeding.changes, epoch, seeding.seq));
      seeding.changes = new Changes();
    }
  } finally {
    await store.close();
  }
}

function addEnded(seeding: Seeding, n: number, createdAtMs: number): void {
  const { changes, worker } = seeding;
  const failed = n % FAILED_EVERY === 0;
  const exitCode = failed ? 1 : 0;
  const state = failed ? 'FAILED' : 'SUCCEEDED';
  const reason = `exit code ${exitCode}`;
  const startedAtMs = createdAtMs + WAIT_MS;
  const endedAtMs = startedAtMs + RUN_MS;
  const job = endedJob(seeding, createdAtMs, endedAtMs);
  const task = endedTask(job, { state, reason, exitCode, startedAtMs, endedAtMs });
  const attempt = endedAttempt(job, worker, { exitCode, startedAtMs, endedAtMs });
  changes.jobs.set(job, 'insert');
  const counts = { succeeded: failed ? 0 : 1, failed: failed ? 1 : 0 };
  const none = { cancelled: 0, unschedulable: 0 };
  changes.endings.set(job, { state, reason, exitCode, startedAtMs, ...counts, ...none });
  changes.tasks.set(task, 'insert');
  changes.attempts.set(attempt, 'insert');
  const ofTask = { tenant: TENANT, job: job.id, task: task.id, attempt: attempt.uid, worker };
  const ofJob = { tenant: TENANT, job: job.id };
  const note = (atMs: number, event: EventNote): void => addEvent(seeding, atMs, event);
  note(createdAtMs, { kind: 'job.submitted', ...ofJob, data: { by: OWNER, tasks: 1 } });
  note(createdAtMs, { kind: 'task.assigned', ...ofTask });
  note(startedAtMs, { kind: 'task.running', ...ofTask });
  const how = { state, reason, cause: 'exited', exitCode };
  note(endedAtMs, { kind: 'task.ended', ...ofTask, data: how });
  note(endedAtMs, { kind: 'job.ended', ...ofJob, data: { state, exitCode } });
}

function endedJob({ mint, spec }: Seeding, createdAtMs: number, endedAtMs: number): Job {
  return {
    id: mint('j') as JobId,
    cluster: 'local',
    tenant: TENANT,
    owner: OWNER,
    submittingPrincipal: OWNER,
    kind: 'batch',
    spec,
    taskCount: 1,
    round: 0,
    createdAtMs,
    parent: null,
    root: null,
    cancelRequestedAtMs: null,
    cancelledBy: null,
    spentMicros: 0,
    endedAtMs,
    newPriority: null,
    version: 2,
  };
}

type TaskEnd = Pick<Task, 'state' | 'reason' | 'exitCode' | 'startedAtMs' | 'endedAtMs'>;

function endedTask(job: Job, end: TaskEnd): Task {
  return {
    id: taskId(job.id, 0),
    job: job.id,
    cluster: job.cluster,
    tenant: job.tenant,
    index: 0,
    attempts: 1,
    failures: end.state === 'FAILED' ? 1 : 0,
    interruptions: 0,
    roundDone: false,
    notBeforeMs: 0,
    createdAtMs: job.createdAtMs,
    version: 4,
    ...end,
  };
}

type AttemptEnd = Pick<Attempt, 'exitCode' | 'startedAtMs' | 'endedAtMs'>;

function endedAttempt(job: Job, worker: WorkerId, end: AttemptEnd): Attempt {
  const task = taskId(job.id, 0);
  return {
    uid: attemptUid(task, 1, job.id.slice(-8).padStart(24, '0')),
    task,
    job: job.id,
    tenant: job.tenant,
    n: 1,
    round: 0,
    worker,
    state: 'ENDED',
    stopCause: null,
    cause: 'exited',
    signal: null,
    message: '',
    assignedAtMs: job.createdAtMs,
    stdoutBytes: 0,
    stderrBytes: 0,
    priceMicros: 0,
    charges: 0,
    chargedMicros: 0,
    chargedDeviceMs: 0,
    facts: {},
    result: null,
    resultBytes: null,
    version: 4,
    ...end,
  };
}

function addEvent(seeding: Seeding, atMs: number, event: EventNote): void {
  seeding.changes.events.push({
    epoch: seeding.epoch,
    seq: ++seeding.seq,
    atMs,
    kind: event.kind,
    tenant: event.tenant,
    job: event.job ?? null,
    task: event.task ?? null,
    attempt: event.attempt ?? null,
    worker: event.worker ?? null,
    data: event.data ?? {},
    hash: null,
  });
}
