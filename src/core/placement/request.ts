/** What is placed and on what, as planners see it. Plain data: it crosses threads. */
import type { WorkerId } from '../../model/ids.ts';
import type { PlacementSpec, WorkerTerms } from '../../model/placement.ts';
import type { ResourceRequest, WorkerResources } from '../../model/resources.ts';

/** Shared by all tasks of one class: the same key means the same answer to every question here. */
export interface PlacementRequest {
  key: string;
  tenant: string;
  user: string;
  resources: ResourceRequest;
  placement: PlacementSpec;
  /** Empty: any. */
  pool: string;
  /** 0 is placed first. */
  band: number;
  /** Number of tasks that must start together; 1 for all but gangs. */
  gangSize: number;
  /** Arrays: at most this many tasks of a job run at once; 0: no limit. */
  arrayLimit: number;
  /** 0: none. */
  timeLimitMs: number;
  /** Stop notice that running work of this class gets. */
  graceMs: number;
  /** How long it needs a worker at least, its grace included; 0: nobody knows. */
  neededMs: number;
}

export interface PlannerWorker {
  id: WorkerId;
  name: string;
  pool: string;
  network: string;
  attributes: Record<string, string>;
  resources: WorkerResources;
  terms: WorkerTerms;
  /** Price in millionths for an hour of one whole device, and of one core. */
  deviceHourMicros: number;
  cpuHourMicros: number;
  /** How long it can be used at least; null: nobody knows of an end. */
  lasts: { ms: number; assumedJobMs: number } | null;
  /** Online, well and not draining. */
  open: boolean;
}
