/** What capacity planning reads and says: plain data, so that it can be planned and explained. */
import type { InstanceId, JobId, TaskId } from '../../model/ids.ts';
import type { WorkerTerms } from '../../model/placement.ts';
import type { ResourceRequest, WorkerResources } from '../../model/resources.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { Backoff } from './backoff.ts';
import type { PoolReason } from './reasons.ts';

/** Work of one class that fits no worker there is. */
export interface Demand {
  request: PlacementRequest;
  /** Tasks that wait; of a gang, all members. */
  waiting: number;
  /** The first of them, in the order in which they would start, whole gangs only. */
  tasks: readonly { task: TaskId; job: JobId }[];
  /** For people: the name of the first job. */
  name: string;
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
  /** Unused for this long, one is given back. */
  idleTimeoutMs: number;
  /** What one machine brings in mode `agents`; null: nobody knows, so it is taken to fit. */
  size: WorkerResources | null;
  /** In mode `job`: what no machine has more of; null: anything goes. */
  largest: WorkerResources | null;
  attributes: Record<string, string>;
  /** The network that all its machines are on; null: they do not reach each other. */
  network: string | null;
  terms: WorkerTerms;
  /** As of the provider: several instances at once, several workers in one. */
  batches: boolean;
  gangs: boolean;
  /** How long an instance lives at most; 0: for ever. What needs longer does not fit. */
  longestMs: number;
  assumedJobMs: number;
  /** What an instance costs for one billing quantum. */
  quantumMicros: number;
  /** For as long as this it is paid for at once; 0: by the moment. */
  quantumMs: number;
  /** Of its limits of spend the one with the least left; null: no limit. */
  spend: SpendLeft | null;
  /** Where one work's machine is closed to other users' (sites with accounts). */
  perUser: boolean;
  /** Price of an hour of a device and of a core to whoever uses it: the cheapest pool first. */
  deviceHourMicros: number;
  cpuHourMicros: number;
  /** Its instances that have not ended. */
  instances: readonly CapacityInstance[];
  backoff: Backoff;
}

export interface SpendLeft {
  leftMicros: number;
  limitMicros: number;
  period: 'hour' | 'day' | 'month';
  /** When the next period begins. */
  renewsAtMs: number;
}

export interface CapacityInstance {
  id: InstanceId;
  state: 'coming' | 'joined' | 'leaving';
  /** Of one that comes: it has not started at its provider's, so that giving it up is free. */
  queued: boolean;
  workers: number;
  resources: WorkerResources;
  /** Sized for these. */
  tasks: readonly TaskId[];
  /** Their class; empty: it takes any work. */
  classKey: string;
  /** How many of its tasks still wait. */
  waiting: number;
  /** `tenant/user`, as `runAsOf` writes it; empty: anybody's. */
  runAs: string;
  /**
   * Since when nothing has run on it; null: something does, or it takes no work just now. Of one
   * that comes: since when each plan has named it in `unwanted`; null: the last plan did not.
   */
  idleSinceMs: number | null;
  /** How long it was asked for; 0: no limit. */
  timeLimitMs: number;
  /** When its provider ends it; null: not known, or never. */
  endsAtMs: number | null;
  /** Until when it is paid for; null: nothing was due yet. */
  paidUntilMs: number | null;
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
  /** Mode `job`: per instance the tasks it is for, and their class; otherwise empty. */
  tasks: TaskId[][];
  classKey: string;
  runAs: { tenant: string; user: string } | null;
  timeLimitMs: number;
  noticeMs: number;
  name: string;
  reason: string;
}

export interface CapacityPlan {
  /** In this order: the next plan reads instances by id, and then finds the same covered. */
  launches: Launch[];
  /** Idle for too long, or above what is wanted: to be drained and given back. */
  releases: Release[];
  /** Classes that something is on its way for, and for how many of their tasks. */
  coming: { classKey: string; tasks: number; instances: InstanceId[]; pools: string[] }[];
  /** Classes with tasks for which nothing could be launched, how many, and why. */
  unmet: { classKey: string; tasks: number; reasons: PoolReason[] }[];
  /** Instances on their way that nothing waits for: see `idleSinceMs`. */
  unwanted: InstanceId[];
  /** When waiting alone may change the plan (cooldown, back-off, idle); null: only news can. */
  nextAtMs: number | null;
}

export interface Release {
  pool: string;
  instance: InstanceId;
  reason: string;
  /** There is no money for it: what runs on it is stopped, with its grace. */
  unpaid: boolean;
}

export function runAsOf({ tenant, user }: { tenant: string; user: string }): string {
  return `${tenant}/${user}`;
}
