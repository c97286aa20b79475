/** A task: one unit that is placed on one worker. */
import type { JobId, TaskId } from './ids.ts';

export const TASK_STATES = [
  'PENDING',
  'ASSIGNED',
  'RUNNING',
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'UNSCHEDULABLE',
] as const;
export type TaskState = (typeof TASK_STATES)[number];

export interface Task {
  id: TaskId;
  job: JobId;
  cluster: string;
  tenant: string;
  index: number;
  state: TaskState;
  /** How many attempts were made; the current one is number `attempts`. */
  attempts: number;
  failures: number;
  interruptions: number;
  /** Set in a gang when this round's attempt ended well while other members still run. */
  roundDone: boolean;
  /** Why it is in this state, for a person. */
  reason: string;
  exitCode: number | null;
  /** Not placed again before this time. */
  notBeforeMs: number;
  createdAtMs: number;
  startedAtMs: number | null;
  endedAtMs: number | null;
  version: number;
}
