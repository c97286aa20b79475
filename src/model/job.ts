/** A job: what a user asked for, and its state as derived from its tasks. */
import type { JobId } from './ids.ts';
import type { JobParts } from './jobParts.ts';
import type { PlacementSpec } from './placement.ts';
import type { ResourceRequest } from './resources.ts';

export const PRIORITIES = ['production', 'interactive', 'batch'] as const;
export type Priority = (typeof PRIORITIES)[number];

/** How a job splits into tasks. */
export type Shape =
  | { kind: 'single' }
  /** Independent tasks, one per index; the index is given as DROVER_ARRAY_INDEX. */
  | {
      kind: 'array';
      indices: number[];
      /** At most this many run at once; 0: no limit. */
      limit: number;
    }
  /** Tasks that start together or not at all and can reach each other. */
  | { kind: 'gang'; size: number };

export const AFTER_CONDITIONS = ['ok', 'failed', 'any'] as const;

/** The job waits until another one has ended, and ended so. */
export interface After {
  job: JobId;
  when: (typeof AFTER_CONDITIONS)[number];
}

/** The accepted, complete form of a submission: every default filled in. */
export interface JobSpec extends JobParts {
  name: string;
  command: string[];
  env: Record<string, string>;
  /** An existing directory on the worker; empty means the attempt's own. */
  workdir: string;
  resources: ResourceRequest;
  shape: Shape;
  /** Empty means any pool. */
  pool: string;
  priority: Priority;
  placement: PlacementSpec;
  after: After[];
  /** Stopped when it has cost this much, in millionths; 0 means no limit of its own. */
  maxCostMicros: number;
  /** Budget of failures the user's code may cause before the task fails for good. */
  retries: number;
  /** Budget of interruptions (lost machines and the like). */
  maxInterruptions: number;
  /** 0 means none. */
  timeLimitMs: number;
  /** 0 means it may wait for ever. */
  startWithinMs: number;
  /** Between TERM and KILL. */
  graceMs: number;
  /** How long an attempt goes on without contact before it is called lost; 0: the cluster's. */
  attemptLeaseMs: number;
  labels: Record<string, string>;
}

export const JOB_KINDS = ['batch', 'service'] as const;
export type JobKind = (typeof JOB_KINDS)[number];

/** Owned by `cluster`; this installation calls itself `local`. */
export interface Job {
  id: JobId;
  cluster: string;
  tenant: string;
  owner: string;
  submittingPrincipal: string;
  kind: JobKind;
  spec: JobSpec;
  taskCount: number;
  /** The gang's current round; 0 for other shapes. A member's failure ends the round. */
  round: number;
  createdAtMs: number;
  /** The job whose attempt submitted it, and the first of that line; null: a user did. */
  parent: JobId | null;
  root: JobId | null;
  cancelRequestedAtMs: number | null;
  /** Who asked for the cancel. */
  cancelledBy: string | null;
  endedAtMs: number | null;
  /** What its attempts were charged so far, in millionths. */
  spentMicros: number;
  /** Set when it is not the one it was submitted with. */
  newPriority: Priority | null;
  version: number;
}

export const JOB_STATES = [
  'PENDING',
  'RUNNING',
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'UNSCHEDULABLE',
] as const;
export type JobState = (typeof JOB_STATES)[number];
