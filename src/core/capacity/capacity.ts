/** What capacity planning reads and says: plain data, so that it can be planned and explained. */
import type { InstanceId, JobId, TaskId } from '../../model/ids.ts';
import type { WorkerTerms } from '../../model/placement.ts';
import type { ResourceRequest, WorkerResources } from '../../model/resources.ts';
import type { PlacementRequest } from '../placement/request.ts';

/** Work of one class that fits no worker there is. */
export interface Demand {
  request: PlacementRequest;
  /** Tasks that wait; of a gang, all members. */
  waiting: number;
  /** The first of them, in the order in which they would start, whole gangs only. */
  tasks: { task: TaskId; job: JobId }[];
  sinceMs: number;
  /** How many more tasks the tenant's and the user's hard limits allow, by pool; absent: any. */
  affordable: ReadonlyMap<string, number>;
}

/** A pool that brings machines by itself, as it stands now. */
export interface CapacityPool {
  name: string;
  mode: 'agents' | 'job';
  min: number;
  max: number;
  maxPending: number;
  cooldownMs: number;
  /** What one machine brings in mode `agents`; null: nobody knows, so it is taken to fit. */
  size: WorkerResources | null;
  /** In mode `job`: what no machine has more of; null: anything goes. */
  largest: WorkerResources | null;
  attributes: Record<string, string>;
  terms: WorkerTerms;
  /** As of the provider: several instances at once, several workers in one. */
  batches: boolean;
  gangs: boolean;
  /** How long an instance lives at most; 0: for ever. What needs longer does not fit. */
  longestMs: number;
  assumedJobMs: number;
  /** What an instance costs for one billing quantum. */
  quantumMicros: number;
  /** For as long as this it is paid for at once. */
  quantumMs: number;
  /** What may still be spent on new instances; null: no limit. */
  spendLeftMicros: number | null;
  /** Where one work's machine is closed to other users' (mode `job` of sites with accounts). */
  perUser: boolean;
  /** Price of an hour of a device and of a core to whoever uses it: the cheapest pool first. */
  deviceHourMicros: number;
  cpuHourMicros: number;
  /** Its instances that have not ended. */
  instances: readonly CapacityInstance[];
  backoff: Backoff;
}

export interface CapacityInstance {
  id: InstanceId;
  state: 'coming' | 'joined' | 'leaving';
  workers: number;
  resources: WorkerResources;
  /** Sized for these. */
  tasks: readonly TaskId[];
  runAs: string;
  /** Since when nothing has run on it; null: something does, or it has not joined. */
  idleSinceMs: number | null;
}

/** How a pool holds back after failures: fewer at once, and later. */
export interface Backoff {
  /** How many may come at once: grows by one with each success, halves with each failure. */
  window: number;
  failuresInRow: number;
  lastLaunchAtMs: number | null;
  /** No launch before this. */
  notBeforeMs: number;
  /** The last failure, for a person; empty: none since the last success. */
  error: string;
}

/** To be launched with one call. */
export interface Launch {
  pool: string;
  /** How many instances. */
  count: number;
  /** How many workers each brings, and what each must have; null: as the pool's machines have. */
  workers: number;
  resources: ResourceRequest | null;
  /** What each worker is taken to bring. */
  brings: WorkerResources;
  /** Mode `job`: per instance the tasks it is for. */
  tasks: TaskId[][];
  runAs: { tenant: string; user: string } | null;
  timeLimitMs: number;
  noticeMs: number;
  name: string;
  reason: string;
}

export interface CapacityPlan {
  launches: Launch[];
  /** Idle for too long, or above what is wanted: to be drained and given back. */
  releases: { instance: InstanceId; reason: string }[];
  /** Classes that something is on its way for. */
  coming: { classKey: string; instances: InstanceId[]; pools: string[] }[];
  /** Classes for which nothing could be launched, and why, in the pools' words. */
  unmet: { classKey: string; reasons: string[] }[];
  /** When waiting alone may change the plan (cooldown, back-off, idle); null: only news can. */
  nextAtMs: number | null;
}
