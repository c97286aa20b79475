/** A workload: jobs in order of their submission, with what each of their tasks will do. */
import type { After, JobSpec } from '../../model/job.ts';
import type { WorkloadSummary } from '../../protocol/simulation.ts';

export interface SimulatedJob {
  /** When it is submitted, from the workload's start. */
  atMs: number;
  tenant: string;
  user: string;
  /** Jobs that ask for the same share one object: there may be a million of them. */
  spec: JobSpec;
  /** Of each task in order of index, or of all alike. */
  durationMs: number | readonly number[];
  /** What each attempt exits with. */
  exitCode: number;
  /** The share of attempts that fail somewhere on their way, from 0 to 1. */
  failures: number;
  /** The name under which other jobs wait for it; null: none does. */
  remembered: string | null;
  /** Jobs that must have ended so, by the name they are remembered under: the newest counts. */
  after: readonly { name: string; when: After['when'] }[];
  /** How often it saves its progress; 0: never, an interrupted task begins anew. */
  checkpointMs: number;
}

export interface Workload {
  /** Wall time of its start. */
  startMs: number;
  summary: WorkloadSummary;
  /** All of it from the start; the same each time. */
  jobs(): Iterator<SimulatedJob>;
  /** Nothing more is submitted and nothing goes on after this; null: until all is done. */
  horizonMs: number | null;
}

/** An ordinary day, for workloads that do not say when they were. */
export const USUAL_START_MS = Date.UTC(2026, 0, 5);

export function durationOf({ durationMs }: SimulatedJob, position: number): number {
  return typeof durationMs === 'number' ? durationMs : (durationMs[position] ?? 0);
}
