/**
 * The tasks a job begins with. They follow from its spec, so a task has no row of its own until
 * something happens to it: a submission writes the job alone, however many tasks it has.
 */
import { taskId } from '../model/ids.ts';
import type { Job, JobSpec } from '../model/job.ts';
import type { Task } from '../model/task.ts';

/** The version of a task to which nothing has happened yet. */
export const UNTOUCHED = 1;

export function taskCount(spec: JobSpec): number {
  if (spec.shape.kind === 'array') return spec.shape.indices.length;
  return spec.shape.kind === 'gang' ? spec.shape.size : 1;
}

/** In order of index. */
export function newTasks(job: Job): Task[] {
  const { shape } = job.spec;
  if (shape.kind === 'single') return [newTask(job, 0)];
  if (shape.kind === 'gang') return Array.from({ length: shape.size }, (_, i) => newTask(job, i));
  return shape.indices.toSorted((a, b) => a - b).map((index) => newTask(job, index));
}

/** All tasks of a job of which these have rows. */
export function completeTasks(job: Job, stored: Task[]): Task[] {
  if (stored.length === job.taskCount) return stored.toSorted((a, b) => a.index - b.index);
  const byIndex = new Map(stored.map((task) => [task.index, task]));
  return newTasks(job).map((task) => byIndex.get(task.index) ?? task);
}

function newTask(job: Job, index: number): Task {
  return {
    id: taskId(job.id, index),
    job: job.id,
    cluster: job.cluster,
    tenant: job.tenant,
    index,
    state: 'PENDING',
    attempts: 0,
    failures: 0,
    interruptions: 0,
    roundDone: false,
    reason: '',
    exitCode: null,
    notBeforeMs: 0,
    createdAtMs: job.createdAtMs,
    startedAtMs: null,
    endedAtMs: null,
    version: UNTOUCHED,
  };
}
