/** REST schemas of jobs, tasks, attempts, events and the queue. */
import { z } from 'zod';
import { ATTEMPT_STATES, END_CAUSES } from '../model/attempt.ts';
import { EVENT_KINDS } from '../model/event.ts';
import { JOB_KINDS, JOB_STATES, PRIORITIES, type JobSpec } from '../model/job.ts';
import { DEVICE_KINDS } from '../model/resources.ts';
import { TASK_STATES } from '../model/task.ts';

/** Named limits of a submission, each with a test. */
export const JOB_LIMITS = {
  nameLength: 200,
  commandWords: 4096,
  commandBytes: 128 * 1024,
  envEntries: 4096,
  envBytes: 256 * 1024,
  arrayTasks: 10_000,
  gangTasks: 1024,
  batchJobs: 1000,
  labels: 64,
  retries: 100,
  ports: 64,
} as const;

const DAY_MS = 86_400_000;
const durationMs = z
  .int()
  .min(0)
  .max(3650 * DAY_MS);
// No NUL and no lone surrogate: neither survives argv, the environment or a text column.
const clean = (limit: number) =>
  z
    .string()
    .max(limit)
    .refine((s) => !s.includes('\0') && s.isWellFormed(), 'holds a NUL or half a character');

export const deviceRequest = z.strictObject({
  kind: z.enum(DEVICE_KINDS).default('gpu'),
  count: z.int().min(1).max(1024).default(1),
  share: z.int().min(1).max(1000).default(1000),
  models: z.array(clean(100)).max(100).default([]),
  memoryBytes: z.int().min(0).default(0),
});

export const resourceRequest = z.strictObject({
  cpuMillis: z.int().min(1).max(1_024_000).default(1000),
  memoryBytes: z.int().min(0).default(0),
  device: deviceRequest.nullable().default(null),
  ports: z.int().min(0).max(JOB_LIMITS.ports).default(0),
});

export const shape = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('single') }),
  z.strictObject({
    kind: z.literal('array'),
    indices: z.array(z.int().min(0).max(1_000_000_000)).min(1).max(JOB_LIMITS.arrayTasks),
  }),
  z.strictObject({ kind: z.literal('gang'), size: z.int().min(1).max(JOB_LIMITS.gangTasks) }),
]);

export const jobSpec = z
  .strictObject({
    name: clean(JOB_LIMITS.nameLength).default(''),
    command: z.array(clean(JOB_LIMITS.commandBytes)).min(1).max(JOB_LIMITS.commandWords),
    env: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
          .max(256),
        clean(JOB_LIMITS.envBytes),
      )
      .default({}),
    workdir: clean(4096).default(''),
    resources: resourceRequest.prefault({}),
    shape: shape.default({ kind: 'single' }),
    pool: clean(100).default(''),
    priority: z.enum(PRIORITIES).default('batch'),
    retries: z.int().min(0).max(JOB_LIMITS.retries).default(0),
    maxInterruptions: z.int().min(0).max(10_000).default(100),
    timeLimitMs: durationMs.default(0),
    startWithinMs: durationMs.default(0),
    graceMs: z.int().min(0).max(600_000).default(10_000),
    attemptLeaseMs: z
      .int()
      .max(DAY_MS)
      .refine((ms) => ms === 0 || ms >= 60_000, 'is 0 (the cluster default) or at least 60000')
      .default(0),
    labels: z.record(clean(63).min(1), clean(256)).default({}),
  })
  .superRefine(checkSizes)
  .meta({ id: 'JobSpec' });

/** The schema's output is exactly the model's JobSpec. */
export type SubmittedSpec = z.input<typeof jobSpec>;
export const parsedJobSpec: z.ZodType<JobSpec, SubmittedSpec> = jobSpec;

function checkSizes(spec: JobSpec, context: z.RefinementCtx): void {
  const fail = (path: string, message: string): void =>
    context.addIssue({ code: 'custom', path: path.split('.'), message });
  if (!spec.command[0]) fail('command.0', 'the program to run is empty');
  let commandBytes = 0;
  for (const word of spec.command) commandBytes += word.length;
  if (commandBytes > JOB_LIMITS.commandBytes) {
    fail('command', `is ${commandBytes} characters, the limit is ${JOB_LIMITS.commandBytes}`);
  }
  let envBytes = 0;
  let envEntries = 0;
  for (const key in spec.env) {
    envBytes += key.length + (spec.env[key]?.length ?? 0);
    envEntries++;
  }
  if (envBytes > JOB_LIMITS.envBytes || envEntries > JOB_LIMITS.envEntries) {
    fail(
      'env',
      `has ${envEntries} entries of ${envBytes} characters; at most ${JOB_LIMITS.envEntries} of ${JOB_LIMITS.envBytes} together`,
    );
  }
  const device = spec.resources.device;
  if (device && device.share < 1000 && device.count !== 1) {
    fail('resources.device.share', 'a share is of one device: count must be 1');
  }
  if (
    spec.shape.kind === 'array' &&
    new Set(spec.shape.indices).size !== spec.shape.indices.length
  ) {
    fail('shape.indices', 'an index appears twice');
  }
}

export const submitBatch = z.strictObject({
  jobs: z.array(jobSpec).min(1).max(JOB_LIMITS.batchJobs),
});

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
  })
  .meta({ id: 'Attempt' });
export type AttemptView = z.infer<typeof attemptView>;

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
    stream: z.enum(['stdout', 'stderr']),
    offset: z.int(),
    atMs: ms,
    /** The bytes as UTF-8; bytes that are not valid UTF-8 are sent as `base64` instead. */
    text: z.string().optional(),
    base64: z.string().optional(),
  })
  .meta({ id: 'LogRecord' });
export type LogRecordView = z.infer<typeof logRecord>;

export const LIST_PAGE_LIMIT = 500;
export const listJobsQuery = z.strictObject({
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(LIST_PAGE_LIMIT).default(50),
  state: z.enum(JOB_STATES).optional(),
  name: z.string().max(JOB_LIMITS.nameLength).optional(),
  owner: z.string().max(200).optional(),
});
export type ListJobsQuery = z.infer<typeof listJobsQuery>;

export const pageQuery = z.strictObject({
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(LIST_PAGE_LIMIT).default(100),
});
export type PageQuery = z.infer<typeof pageQuery>;
