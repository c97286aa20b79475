/**
 * Simulations: what the command line asks of the engine, and what it gets back. Plain data but for
 * the sources; the engine is in control/, which the command line may not import.
 */
import type { Priority } from '../model/job.ts';
import type { DroverClient } from './client.ts';

export type Simulate = (request: SimulationRequest) => Promise<Simulation>;

/** A file and what it holds; the name is for messages. */
export interface NamedText {
  name: string;
  text: string;
}

export type WorkloadSource =
  | ({ kind: 'file' } & NamedText)
  /** A Slurm site's accounting as `sacct -P` prints it. */
  | { kind: 'sacct'; name: string; lines: AsyncIterable<string> }
  /** What a live server ran since then. */
  | { kind: 'server'; client: DroverClient; sinceMs: number; nowMs: number };

/** One way to run the workload. */
export interface Variant {
  name: string;
  /** Null: the workers of the live server that the workload comes from. */
  fleet: NamedText | null;
  /** `key=value` each. */
  policy: string[];
}

export interface SimulationRequest {
  workload: WorkloadSource;
  /** The first is what the others are compared with. */
  variants: Variant[];
  /** Null: the workload's own, or 1. */
  seed: number | null;
  /** Virtual time after which it stops, whatever still runs; null: when all is done. */
  horizonMs: number | null;
  svg: boolean;
  /** Told now and then, for a person who waits. */
  progress: (text: string) => void;
}

export interface Simulation {
  workload: WorkloadSummary;
  runs: RunReport[];
  /** A drawing of queue and utilisation over time, where it was asked for. */
  svg: string | null;
}

export interface WorkloadSummary {
  source: WorkloadSource['kind'];
  name: string;
  seed: number;
  /** Jobs that were read; null where a file describes streams of them. */
  jobs: number | null;
  /** What was left out and why. */
  skipped: { reason: string; count: number; lines: number[] }[];
  /** How long they waited where they really ran. */
  recorded: WaitRow[] | null;
}

/** A gang counts as one, else each task. */
export interface WaitRow {
  band: Priority | 'all';
  count: number;
  started: number;
  meanMs: number;
  p50Ms: number;
  p90Ms: number;
  p99Ms: number;
  maxMs: number;
}

export interface RunReport {
  name: string;
  fleet: { workers: number; cpus: number; devices: number };
  /** From the first submission to the last end, or the horizon. */
  makespanMs: number;
  jobs: {
    submitted: number;
    succeeded: number;
    failed: number;
    unschedulable: number;
    /** Refused at submission: no worker of the fleet could ever run it. */
    refused: number;
    /** Not over when the simulation was. */
    running: number;
    waiting: number;
  };
  wait: WaitRow[];
  /** Shares from 0 to 1 of what there was; null where there was none. */
  utilisation: { cpu: number | null; devices: number | null };
  /** Money in millionths. */
  cost: { usedMicros: number; standingMicros: number };
  pools: PoolRow[];
  tenants: TenantRow[];
  /**
   * Jain's index over the weighted dominant shares of the tenants that have work waiting, averaged
   * over time; 1 is even. Null when no two ever waited at once.
   */
  fairness: number | null;
  preemptions: number;
  /** Attempts that ended with their machine. */
  lost: number;
  /** Attempts that failed and were tried again. */
  retried: number;
  unschedulable: { reason: string; jobs: number }[];
  series: Series;
  speed: {
    wallMs: number;
    planMs: number;
    plans: number;
    placements: number;
    placementsPerSecond: number;
  };
}

export interface PoolRow {
  pool: string;
  workers: number;
  cpus: number;
  devices: number;
  cpu: number | null;
  deviceShare: number | null;
  deviceHours: number;
  /** What jobs held, at the pool's prices. */
  usedMicros: number;
  /** The whole pool for the whole time, idle or not. */
  standingMicros: number;
}

export interface TenantRow {
  tenant: string;
  jobs: number;
  deviceHours: number;
  cpuHours: number;
  usedMicros: number;
}

/** Means over steps of equal length from the first submission on. */
export interface Series {
  stepMs: number;
  waiting: number[];
  running: number[];
  cpu: number[];
  devices: number[];
}
