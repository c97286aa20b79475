/** The states of a task and the moves between them. */
import type { TaskState } from '../../model/task.ts';
import { moved, type Moves } from './moves.ts';

const LIVE = ['PENDING', 'ASSIGNED', 'RUNNING'] as const;
const PLACED = ['ASSIGNED', 'RUNNING'] as const;

export const TASK_MOVES = {
  assign: { from: ['PENDING'], to: 'ASSIGNED' },
  run: { from: ['ASSIGNED'], to: 'RUNNING' },
  requeue: { from: PLACED, to: 'PENDING' },
  succeed: { from: PLACED, to: 'SUCCEEDED' },
  fail: { from: LIVE, to: 'FAILED' },
  cancel: { from: LIVE, to: 'CANCELLED' },
  giveUp: { from: ['PENDING'], to: 'UNSCHEDULABLE' },
} as const satisfies Moves<TaskState>;

export function moveTask(name: keyof typeof TASK_MOVES, from: TaskState): TaskState {
  return moved<TaskState, typeof TASK_MOVES>(TASK_MOVES, name, from);
}

export function taskEnded(state: TaskState): boolean {
  return state !== 'PENDING' && state !== 'ASSIGNED' && state !== 'RUNNING';
}
