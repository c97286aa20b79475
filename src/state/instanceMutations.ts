/** Mutations of instances, hosts and what workers say of their health. */
import type { Host } from '../model/host.ts';
import type { HealthProblem } from '../model/health.ts';
import type { InstanceId, TaskId, WorkerId } from '../model/ids.ts';
import type { FailureClass, Instance } from '../model/instance.ts';
import type { WorkerResources } from '../model/resources.ts';

/** Machines are wanted: on disk before anybody is asked for them. All of them or none. */
export interface Intend {
  kind: 'intend';
  pool: string;
  /** The pool has at most this many that are not yet ended. */
  max: number;
  count: number;
  workers: number;
  resources: WorkerResources;
  /** Per instance what it is sized for; empty: for any work. */
  tasks: TaskId[][];
  runAs: string;
  priceHourMicros: number;
  timeLimitMs: number;
  reason: string;
}

/** What is known of instances now; only what differs has an effect. */
export interface ObserveInstances {
  kind: 'observe-instances';
  instances: InstanceNews[];
}

export interface InstanceNews {
  instance: InstanceId;
  /** request, boot, probe, restart: where it stands; absent: as before. */
  move?: 'request' | 'boot' | 'probe' | 'restart';
  reason?: string;
  handle?: string;
  host?: string;
  script?: string;
  startsAtMs?: number | null;
  endsAtMs?: number | null;
  restarts?: number;
  priceHourMicros?: number;
  /** It is paid for until then: this much more was spent on it. */
  paid?: { untilMs: number; micros: number };
}

/** No work for it any more; it goes when it is empty. */
export interface DrainInstance {
  kind: 'drain-instance';
  instance: InstanceId;
  reason: string;
}

/** It is to be gone: asked for again and again until the provider does not have it. */
export interface DestroyInstance {
  kind: 'destroy-instance';
  instance: InstanceId;
  failure: FailureClass | null;
  reason: string;
  /** Who wants it; empty: a rule. */
  by: string;
  tenant: string;
}

/** The provider does not have it (any more): whatever ran there is lost. */
export interface EndInstance {
  kind: 'end-instance';
  instance: InstanceId;
  failure: FailureClass | null;
  reason: string;
}

/** A worker belongs to an instance: learned after it joined. */
export interface LinkWorker {
  kind: 'link-worker';
  worker: WorkerId;
  instance: InstanceId;
}

/** All that is wrong with a worker's machine now. */
export interface ReportHealth {
  kind: 'report-health';
  worker: WorkerId;
  problems: HealthProblem[];
}

export interface SetHost {
  kind: 'set-host';
  host: Host['id'];
  word: 'blocked' | 'allowed' | 'clear';
  by: string;
  tenant: string;
}

export type InstanceMutation =
  | Intend
  | ObserveInstances
  | DrainInstance
  | DestroyInstance
  | EndInstance
  | LinkWorker
  | ReportHealth
  | SetHost;

/** Fields that news may change. */
export type NewsField = keyof Omit<InstanceNews, 'instance' | 'move' | 'paid'> & keyof Instance;
