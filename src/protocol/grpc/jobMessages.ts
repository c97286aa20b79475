/** Jobs, tasks, attempts, events and logs between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { EventKind } from '../../model/event.ts';
import type { LogPage } from '../coordinator.ts';
import type * as wire from '../gen/drover/v1/job_pb.ts';
import {
  type AttemptView,
  type CheckpointView,
  type EventView,
  type JobView,
  type AnyRecordView,
  type QueueEntry,
  type TaskView,
} from '../jobs.ts';
import { specFromWire, specToWire } from './specMessages.ts';
import * as w from './wire.ts';

export function jobToWire(job: JobView): MessageInitShape<typeof wire.JobSchema> {
  return {
    ...job,
    state: w.jobState.toWire(job.state),
    kind: w.jobKind.toWire(job.kind),
    priority: w.priority.toWire(job.priority),
    createdAtMs: w.toBigint(job.createdAtMs),
    startedAtMs: w.toBigintOrNone(job.startedAtMs),
    endedAtMs: w.toBigintOrNone(job.endedAtMs),
    cancelRequestedAtMs: w.toBigintOrNone(job.cancelRequestedAtMs),
    exitCode: job.exitCode ?? undefined,
    parent: job.parent ?? undefined,
    root: job.root ?? undefined,
    spec: job.spec && specToWire(job.spec),
  };
}

export function jobFromWire(sent: wire.Job | undefined): JobView {
  const message = w.need(sent, 'job');
  return {
    id: message.id,
    name: message.name,
    state: w.jobState.toWord(message.state),
    reason: message.reason,
    // Another's coordinator may know neither kinds nor bands nor tasks.
    kind: w.jobKind.toWordOrNone(message.kind) ?? 'batch',
    cluster: message.cluster,
    tenant: message.tenant,
    owner: message.owner,
    submittingPrincipal: message.submittingPrincipal,
    priority: w.priority.toWordOrNone(message.priority) ?? 'batch',
    pool: message.pool,
    createdAtMs: w.toNumber(message.createdAtMs),
    startedAtMs: w.toNumberOrNull(message.startedAtMs),
    endedAtMs: w.toNumberOrNull(message.endedAtMs),
    cancelRequestedAtMs: w.toNumberOrNull(message.cancelRequestedAtMs),
    parent: message.parent ?? null,
    root: message.root ?? null,
    exitCode: message.exitCode ?? null,
    tasks: taskCountsFromWire(message.tasks),
    ...(message.spec && { spec: specFromWire(message.spec) }),
  };
}

function taskCountsFromWire(sent: wire.TaskCounts | undefined): JobView['tasks'] {
  const none = { total: 0, pending: 0, running: 0, succeeded: 0, failed: 0 };
  const { $typeName: _, $unknown: __, ...counts } = sent ?? {};
  return { ...none, cancelled: 0, unschedulable: 0, ...counts };
}

export function taskToWire(task: TaskView): MessageInitShape<typeof wire.TaskSchema> {
  return {
    ...task,
    state: w.taskState.toWire(task.state),
    exitCode: task.exitCode ?? undefined,
    worker: task.worker ?? undefined,
    createdAtMs: w.toBigint(task.createdAtMs),
    startedAtMs: w.toBigintOrNone(task.startedAtMs),
    endedAtMs: w.toBigintOrNone(task.endedAtMs),
  };
}

export function taskFromWire(message: wire.Task): TaskView {
  return {
    id: message.id,
    job: message.job,
    index: message.index,
    state: w.taskState.toWord(message.state),
    reason: message.reason,
    attempts: message.attempts,
    failures: message.failures,
    interruptions: message.interruptions,
    exitCode: message.exitCode ?? null,
    worker: message.worker ?? null,
    createdAtMs: w.toNumber(message.createdAtMs),
    startedAtMs: w.toNumberOrNull(message.startedAtMs),
    endedAtMs: w.toNumberOrNull(message.endedAtMs),
  };
}

export function attemptToWire(attempt: AttemptView): MessageInitShape<typeof wire.AttemptSchema> {
  return {
    ...attempt,
    state: w.attemptState.toWire(attempt.state),
    cause: w.endCause.toWireOrNone(attempt.cause),
    exitCode: attempt.exitCode ?? undefined,
    signal: attempt.signal ?? undefined,
    assignedAtMs: w.toBigint(attempt.assignedAtMs),
    startedAtMs: w.toBigintOrNone(attempt.startedAtMs),
    endedAtMs: w.toBigintOrNone(attempt.endedAtMs),
    result: attempt.result ?? undefined,
    resultBytes: w.toBigintOrNone(attempt.resultBytes),
    priceMicros: w.toBigint(attempt.priceMicros),
    chargedMicros: w.toBigint(attempt.chargedMicros),
  };
}

export function attemptFromWire(message: wire.Attempt): AttemptView {
  return {
    uid: message.uid,
    task: message.task,
    n: message.n,
    round: message.round,
    worker: message.worker,
    state: w.attemptState.toWord(message.state),
    cause: w.endCause.toWordOrNone(message.cause) ?? null,
    exitCode: message.exitCode ?? null,
    signal: message.signal ?? null,
    message: message.message,
    assignedAtMs: w.toNumber(message.assignedAtMs),
    startedAtMs: w.toNumberOrNull(message.startedAtMs),
    endedAtMs: w.toNumberOrNull(message.endedAtMs),
    facts: { ...message.facts },
    result: message.result ?? null,
    resultBytes: w.toNumberOrNull(message.resultBytes),
    priceMicros: w.toNumber(message.priceMicros),
    chargedMicros: w.toNumber(message.chargedMicros),
  };
}

export function checkpointToWire(
  one: CheckpointView,
): MessageInitShape<typeof wire.CheckpointSchema> {
  return {
    ...one,
    bytes: w.toBigint(one.bytes),
    createdAtMs: w.toBigint(one.createdAtMs),
  };
}

export function checkpointFromWire(message: wire.Checkpoint): CheckpointView {
  const { task, n, attempt, manifest, files, reason } = message;
  return {
    ...{ task, n, attempt, manifest, files, reason },
    bytes: w.toNumber(message.bytes),
    createdAtMs: w.toNumber(message.createdAtMs),
  };
}

export function eventToWire(event: EventView): MessageInitShape<typeof wire.EventSchema> {
  return {
    epoch: w.toBigint(event.epoch),
    seq: w.toBigint(event.seq),
    atMs: w.toBigint(event.atMs),
    kind: event.kind,
    job: event.job ?? undefined,
    task: event.task ?? undefined,
    attempt: event.attempt ?? undefined,
    worker: event.worker ?? undefined,
    data: event.data,
    hash: event.hash ?? undefined,
  };
}

export function eventFromWire(message: wire.Event): EventView {
  return {
    epoch: w.toNumber(message.epoch),
    seq: w.toNumber(message.seq),
    atMs: w.toNumber(message.atMs),
    // A newer controller may send a kind that is not in our list; it is shown as it is.
    kind: message.kind as EventKind,
    job: message.job ?? null,
    task: message.task ?? null,
    attempt: message.attempt ?? null,
    worker: message.worker ?? null,
    // The proto promises flat values; Struct itself could nest.
    data: (message.data ?? {}) as EventView['data'],
    hash: message.hash ?? null,
  };
}

export function queueEntryToWire(
  entry: QueueEntry,
): MessageInitShape<typeof wire.QueueEntrySchema> {
  return {
    ...entry,
    priority: w.priority.toWire(entry.priority),
    createdAtMs: w.toBigint(entry.createdAtMs),
  };
}

export function queueEntryFromWire(message: wire.QueueEntry): QueueEntry {
  return {
    job: message.job,
    name: message.name,
    owner: message.owner,
    priority: w.priority.toWord(message.priority),
    position: message.position,
    pendingTasks: message.pendingTasks,
    createdAtMs: w.toNumber(message.createdAtMs),
    reason: message.reason,
  };
}

function logRecordToWire(record: AnyRecordView): MessageInitShape<typeof wire.LogRecordSchema> {
  const { text, base64, ...rest } = record;
  return {
    ...rest,
    seq: w.toBigint(rest.seq),
    stream: w.logStream.toWire(rest.stream),
    offset: w.toBigint(rest.offset),
    atMs: w.toBigint(rest.atMs),
    content:
      base64 === undefined
        ? { case: 'text', value: text ?? '' }
        : { case: 'raw', value: Buffer.from(base64, 'base64') },
  };
}

function logRecordFromWire(message: wire.LogRecord): AnyRecordView {
  const content = message.content;
  return {
    seq: w.toNumber(message.seq),
    task: message.task,
    index: message.index,
    attempt: message.attempt,
    stream: w.logStream.toWord(message.stream),
    offset: w.toNumber(message.offset),
    atMs: w.toNumber(message.atMs),
    ...(content.case === 'raw'
      ? { base64: Buffer.from(content.value).toString('base64') }
      : { text: content.value ?? '' }),
  };
}

/** What a page of output and one of what is measured have in common, unary and in a stream. */
interface WirePage {
  records: wire.LogRecord[];
  next: bigint;
  complete: boolean;
}

export function logPageToWire({ records, next, complete }: LogPage) {
  return { records: records.map(logRecordToWire), next: w.toBigint(next), complete };
}

export function logPageFromWire({ records, next, complete }: WirePage): LogPage {
  return { records: records.map(logRecordFromWire), next: w.toNumber(next), complete };
}
