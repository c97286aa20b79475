/** How the Coordinator's views look on the training surface: snake_case, times as ISO 8601. */
import { z } from 'zod';
import { JOB_STATES, PRIORITIES } from '../../model/job.ts';
import { WORKER_STATES } from '../../model/worker.ts';
import type { ClusterView, WorkerView } from '../../protocol/fleet.ts';
import {
  taskCounts,
  type CheckpointView,
  type JobView,
  type QueueEntry,
} from '../../protocol/jobs.ts';
import { block, blocksOf } from './blocks.ts';

const time = z.string().meta({ format: 'date-time' });
const timeOrNone = time.nullable();
const count = z.int();
/** The last moment that a Date can hold. */
const LATEST_MS = 8_640_000_000_000_000;

export function timeText(ms: number): string;
export function timeText(ms: number | null): string | null;
export function timeText(ms: number | null): string | null {
  // A job may say anything of when it measured something.
  return ms === null ? null : new Date(Math.min(Math.max(ms, 0), LATEST_MS)).toISOString();
}

const summary = z.object({
  job_id: z.string(),
  name: z.string(),
  status: z.enum(JOB_STATES),
  reason: z.string().describe('Why it waits, or how it ended'),
  error: z.string().nullable().describe('The reason of one that failed'),
  priority: z.enum(PRIORITIES),
  tenant_id: z.string(),
  user_id: z.string(),
  pool: z.string(),
  exit_code: count.nullable(),
  created_at: time,
  started_at: timeOrNone,
  ended_at: timeOrNone,
  cancel_requested_at: timeOrNone,
  tasks: taskCounts,
});

export const trainingSummary = summary.meta({ id: 'TrainingJobSummary' });
export const trainingJob = summary
  .extend({
    model: block.nullable().describe('As it was sent; null for a job that is no training'),
    data: block.nullable(),
    training: block.nullable(),
    resources: block.nullable(),
    checkpoint: block.nullable(),
  })
  .meta({ id: 'TrainingJob' });

const FAILED = new Set(['FAILED', 'UNSCHEDULABLE']);

export function summaryOf(job: JobView): z.infer<typeof trainingSummary> {
  return {
    job_id: job.id,
    name: job.name,
    status: job.state,
    reason: job.reason,
    error: FAILED.has(job.state) ? job.reason : null,
    priority: job.priority,
    tenant_id: job.tenant,
    user_id: job.owner,
    pool: job.pool,
    exit_code: job.exitCode,
    created_at: timeText(job.createdAtMs),
    started_at: timeText(job.startedAtMs),
    ended_at: timeText(job.endedAtMs),
    cancel_requested_at: timeText(job.cancelRequestedAtMs),
    tasks: job.tasks,
  };
}

const NO_BLOCKS = { model: null, data: null, training: null, resources: null, checkpoint: null };

export function trainingJobOf(job: JobView): z.infer<typeof trainingJob> {
  return { ...summaryOf(job), ...(blocksOf(job.spec?.annotations ?? {}) ?? NO_BLOCKS) };
}

export const trainingCheckpoint = z
  .object({
    number: count.describe('Pass as `checkpoint` to evaluate it'),
    task: z.string(),
    attempt: z.string(),
    manifest: z.string().describe('The blob that lists its files'),
    bytes: count,
    files: count,
    reason: z.string(),
    created_at: time,
  })
  .meta({ id: 'TrainingCheckpoint' });

export function checkpointOf(view: CheckpointView): z.infer<typeof trainingCheckpoint> {
  const { n, createdAtMs, ...same } = view;
  return { number: n, ...same, created_at: timeText(createdAtMs) };
}

export const queued = z
  .object({
    job_id: z.string(),
    name: z.string(),
    user_id: z.string(),
    priority: z.enum(PRIORITIES),
    position: count,
    pending_tasks: count,
    reason: z.string(),
    created_at: time,
  })
  .meta({ id: 'TrainingQueueEntry' });

export function queuedOf(entry: QueueEntry): z.infer<typeof queued> {
  const { name, priority, position, reason } = entry;
  return {
    job_id: entry.job,
    ...{ name, user_id: entry.owner, priority, position },
    ...{ pending_tasks: entry.pendingTasks, reason, created_at: timeText(entry.createdAtMs) },
  };
}

export const trainingCluster = z
  .object({
    cluster_id: z.string(),
    name: z.string(),
    version: z.string(),
    started_at: time,
    nodes: z.object({ online: count, suspect: count, draining: count }),
    tasks: z.object({ pending: count, assigned: count, running: count }),
  })
  .meta({ id: 'TrainingCluster' });

export function clusterOf(view: ClusterView): z.infer<typeof trainingCluster> {
  const { id, name, version, startedAtMs, workers, tasks } = view;
  const started_at = timeText(startedAtMs);
  return { cluster_id: id, name, version, started_at, nodes: workers, tasks };
}

const amounts = z.object({ cpus: z.number(), memory_bytes: count, gpus: count });

/** "Node" is this surface's own word for a worker. */
export const trainingNode = z
  .object({
    node_id: z.string(),
    name: z.string(),
    pool: z.string(),
    status: z.enum(WORKER_STATES),
    draining: z.boolean(),
    running: count.describe('Attempts it runs'),
    total: amounts,
    free: amounts,
    gpus: z.array(z.object({ index: count, model: z.string(), memory_bytes: count })),
    joined_at: time,
    last_seen_at: timeOrNone,
  })
  .meta({ id: 'TrainingNode' });

export function nodeOf(worker: WorkerView): z.infer<typeof trainingNode> {
  const { id, name, pool, state, draining, attempts } = worker;
  return {
    ...{ node_id: id, name, pool, status: state, draining, running: attempts },
    total: amountsOf(worker.total),
    free: amountsOf(worker.free),
    gpus: worker.devices.map(({ index, model, memoryBytes }) => ({
      ...{ index, model, memory_bytes: memoryBytes },
    })),
    joined_at: timeText(worker.joinedAtMs),
    last_seen_at: timeText(worker.lastSeenAtMs),
  };
}

function amountsOf({ cpuMillis, memoryBytes, devices }: WorkerView['total']) {
  return { cpus: cpuMillis / 1000, memory_bytes: memoryBytes, gpus: devices };
}
