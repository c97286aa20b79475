/** An attempt: one try at a task on one worker. Append-only history, keyed (task, n). */
import type { AttemptUid, JobId, TaskId, WorkerId } from './ids.ts';

export const ATTEMPT_STATES = ['ASSIGNED', 'STARTING', 'RUNNING', 'STOPPING', 'ENDED'] as const;
export type AttemptState = (typeof ATTEMPT_STATES)[number];

export const END_CAUSES = [
  'exited',
  'signalled',
  'oom',
  'timed-out',
  'preempted',
  'lost',
  'gang-failed',
  'cancelled',
  'never-started',
] as const;
export type EndCause = (typeof END_CAUSES)[number];

/** Why the controller asked an attempt to stop. */
export type StopCause = 'cancelled' | 'timed-out' | 'preempted' | 'gang-failed';

/** Shared by all attempts whose agents have told none. */
export const NO_FACTS: Record<string, string> = Object.freeze({});

export interface Attempt {
  uid: AttemptUid;
  task: TaskId;
  job: JobId;
  tenant: string;
  n: number;
  round: number;
  worker: WorkerId;
  state: AttemptState;
  stopCause: StopCause | null;
  cause: EndCause | null;
  exitCode: number | null;
  signal: string | null;
  /** For a person: what went wrong, if something did. */
  message: string;
  assignedAtMs: number;
  startedAtMs: number | null;
  endedAtMs: number | null;
  /** Total bytes of output, known at the end; null when the machine was lost. */
  stdoutBytes: number | null;
  stderrBytes: number | null;
  /** What an hour of it costs, in millionths, as of its assignment. */
  priceMicros: number;
  /** How often it was charged, and how much in all. */
  charges: number;
  chargedMicros: number;
  chargedDeviceMs: number;
  /** What it ran with, as its agent found it: driver, devices, image, environment. */
  facts: Record<string, string>;
  /** The blob of the manifest of what it left; null: nothing, or not ended yet. */
  result: string | null;
  resultBytes: number | null;
  version: number;
}
