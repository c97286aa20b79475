/** A checkpoint: what a task had saved at some time, restored into its next attempt anywhere. */
import type { AttemptUid, JobId } from './ids.ts';

export interface Checkpoint {
  job: JobId;
  /** The task's. */
  index: number;
  /** Rises within a task; the highest is the newest. */
  n: number;
  /** Who wrote it. */
  attempt: AttemptUid;
  tenant: string;
  /** The blob that lists its files. */
  manifest: string;
  bytes: number;
  files: number;
  /** What it was taken for: interval, signal, deadline, demand, end. */
  reason: string;
  /** When it was taken, on the machine's clock since its boot; 0: its agent does not say. */
  takenBootMs: number;
  createdAtMs: number;
}
