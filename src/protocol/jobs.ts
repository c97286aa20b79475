/** REST schemas of jobs, tasks, attempts, events and the queue. */
import { z } from 'zod';
import { ATTEMPT_STATES, END_CAUSES } from '../model/attempt.ts';
import { EVENT_KINDS } from '../model/event.ts';
import { JOB_KINDS, JOB_STATES, PRIORITIES } from '../model/job.ts';
import { TASK_STATES } from '../model/task.ts';
import { OUTPUT_STREAMS, type LogStream } from './agent.ts';
import { JOB_LIMITS, jobSpec } from './jobSpec.ts';
import { clean } from './texts.ts';
import { pageLimit, queryCursor, taskIndex } from './queries.ts';

const ms = z.number();
export const taskCounts = z.object({
  total: z.int(),
  pending: z.int(),
  running: z.int(),
  succeeded: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  unschedulable: z.int(),
});

export const jobView = z
  .object({
    id: z.string(),
    name: z.string(),
    state: z.enum(JOB_STATES),
    /** Why it waits or how it ended. */
    reason: z.string(),
    kind: z.enum(JOB_KINDS),
    cluster: z.string(),
    tenant: z.string(),
    owner: z.string(),
    submittingPrincipal: z.string(),
    priority: z.enum(PRIORITIES),
    pool: z.string(),
    createdAtMs: ms,
    startedAtMs: ms.nullable(),
    endedAtMs: ms.nullable(),
    cancelRequestedAtMs: ms.nullable(),
    /** The job whose attempt submitted it, and the first of that line. */
    parent: z.string().nullable(),
    root: z.string().nullable(),
    /** The first task's that is not 0, else 0; null until all tasks ended or when none exited. */
    exitCode: z.int().nullable(),
    tasks: taskCounts,
    /** Left out of lists. */
    spec: jobSpec.optional(),
  })
  .meta({ id: 'Job' });
export type JobView = z.infer<typeof jobView>;

export const taskView = z
  .object({
    id: z.string(),
    job: z.string(),
    index: z.int(),
    state: z.enum(TASK_STATES),
    reason: z.string(),
    attempts: z.int(),
    failures: z.int(),
    interruptions: z.int(),
    exitCode: z.int().nullable(),
    worker: z.string().nullable(),
    createdAtMs: ms,
    startedAtMs: ms.nullable(),
    endedAtMs: ms.nullable(),
  })
  .meta({ id: 'Task' });
export type TaskView = z.infer<typeof taskView>;

export const attemptView = z
  .object({
    uid: z.string(),
    task: z.string(),
    n: z.int(),
    round: z.int(),
    worker: z.string(),
    state: z.enum(ATTEMPT_STATES),
    cause: z.enum(END_CAUSES).nullable(),
    exitCode: z.int().nullable(),
    signal: z.string().nullable(),
    message: z.string(),
    assignedAtMs: ms,
    startedAtMs: ms.nullable(),
    endedAtMs: ms.nullable(),
    /** What it ran with, as its agent found it. */
    facts: z.record(z.string(), z.string()),
    /** The blob of the manifest of what it left. */
    result: z.string().nullable(),
    resultBytes: z.int().nullable(),
    /** What an hour of it costs, in millionths. */
    priceMicros: z.int(),
    /** What it was charged so far, in millionths. */
    chargedMicros: z.int(),
  })
  .meta({ id: 'Attempt' });
export type AttemptView = z.infer<typeof attemptView>;

export const checkpointView = z
  .object({
    task: z.string(),
    n: z.int(),
    attempt: z.string(),
    /** The blob that lists its files. */
    manifest: z.string(),
    bytes: z.int(),
    files: z.int(),
    reason: z.string(),
    createdAtMs: ms,
  })
  .meta({ id: 'Checkpoint' });
export type CheckpointView = z.infer<typeof checkpointView>;

export const eventView = z
  .object({
    epoch: z.number(),
    seq: z.number(),
    atMs: ms,
    kind: z.enum(EVENT_KINDS),
    job: z.string().nullable(),
    task: z.string().nullable(),
    attempt: z.string().nullable(),
    worker: z.string().nullable(),
    data: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
    /** Of what somebody did: covers this entry and the hash of the one before it of the tenant. */
    hash: z.string().nullable(),
  })
  .meta({ id: 'Event' });
export type EventView = z.infer<typeof eventView>;

export const queueEntry = z
  .object({
    job: z.string(),
    name: z.string(),
    owner: z.string(),
    priority: z.enum(PRIORITIES),
    position: z.int(),
    pendingTasks: z.int(),
    createdAtMs: ms,
    reason: z.string(),
  })
  .meta({ id: 'QueueEntry' });
export type QueueEntry = z.infer<typeof queueEntry>;

/** One run of output: whole lines where possible. `seq` is the SSE id. */
export const logRecord = z
  .object({
    seq: z.int(),
    task: z.string(),
    index: z.int(),
    attempt: z.int(),
    stream: z.enum(OUTPUT_STREAMS),
    offset: z.int(),
    atMs: ms,
    /** The bytes as UTF-8; bytes that are not valid UTF-8 are sent as `base64` instead. */
    text: z.string().optional(),
    base64: z.string().optional(),
  })
  .meta({ id: 'LogRecord' });
export type LogRecordView = z.infer<typeof logRecord>;
/** The same of what is measured: of either kind of stream. */
export type AnyRecordView = Omit<LogRecordView, 'stream'> & { stream: LogStream };

export const LIST_PAGE_LIMIT = 500;
const filter = (length: number, words: string, example: string) =>
  clean(length)
    .optional()
    .describe(words)
    .meta({ examples: [example] });
export const listJobsQuery = z.strictObject({
  cursor: queryCursor,
  limit: pageLimit(LIST_PAGE_LIMIT, 50),
  state: z.enum(JOB_STATES).optional().describe('Only jobs in this state'),
  name: filter(JOB_LIMITS.nameLength, 'Only jobs of this name', 'train'),
  owner: filter(200, 'Only jobs of this user', 'ada'),
  parent: filter(200, 'Only jobs that this job submitted', 'jmi1qx2k8a7c101'),
});
export type ListJobsQuery = z.infer<typeof listJobsQuery>;

export const pageQuery = z.strictObject({
  cursor: queryCursor,
  limit: pageLimit(LIST_PAGE_LIMIT, 100),
});
export type PageQuery = z.infer<typeof pageQuery>;

/** Lists by task can be of one task alone. */
export const taskPageQuery = pageQuery.extend({
  task: taskIndex,
});
export type TaskPageQuery = z.infer<typeof taskPageQuery>;

export const resultView = z
  .object({
    task: z.string(),
    /** The uid of the attempt that left it. */
    attempt: z.string(),
    /** The blob that lists its files. */
    manifest: z.string(),
    bytes: z.int(),
    files: z.array(
      z.object({
        path: z.string(),
        size: z.int(),
        hash: z.string(),
        executable: z.boolean(),
      }),
    ),
    links: z.array(z.object({ path: z.string(), target: z.string() })),
  })
  .meta({ id: 'Result' });
export type ResultView = z.infer<typeof resultView>;

export const checkpointAsked = z.object({
  /** Ids of the tasks that were asked. */
  tasks: z.array(z.string()),
});
