/** A job's state is never stored as a decision of its own: it is derived from its tasks. */
import type { JobState } from '../../model/job.ts';
import type { Task, TaskState } from '../../model/task.ts';

export type TaskCounts = Record<TaskState, number>;

export function noTasks(): TaskCounts {
  return {
    PENDING: 0,
    ASSIGNED: 0,
    RUNNING: 0,
    SUCCEEDED: 0,
    FAILED: 0,
    CANCELLED: 0,
    UNSCHEDULABLE: 0,
  };
}

export function countTasks(tasks: readonly Task[]): TaskCounts {
  const counts = noTasks();
  for (const task of tasks) counts[task.state]++;
  return counts;
}

/** The worst ending wins: failed, cancelled, unschedulable, succeeded. */
export function jobState(counts: TaskCounts): JobState {
  if (counts.PENDING + counts.ASSIGNED + counts.RUNNING > 0) {
    const begun =
      counts.RUNNING + counts.SUCCEEDED + counts.FAILED + counts.CANCELLED + counts.UNSCHEDULABLE;
    return begun > 0 ? 'RUNNING' : 'PENDING';
  }
  if (counts.FAILED > 0) return 'FAILED';
  if (counts.CANCELLED > 0) return 'CANCELLED';
  if (counts.UNSCHEDULABLE > 0) return 'UNSCHEDULABLE';
  return 'SUCCEEDED';
}
