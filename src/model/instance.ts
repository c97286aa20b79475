/** An instance: one machine or allocation that a provider was asked for. */
import type { InstanceId, TaskId } from './ids.ts';
import type { WorkerResources } from './resources.ts';

export const INSTANCE_STATES = [
  'INTENDED',
  'REQUESTED',
  'BOOTING',
  'PROBING',
  'JOINED',
  'DRAINING',
  'DESTROYING',
  'DESTROYED',
] as const;
export type InstanceState = (typeof INSTANCE_STATES)[number];

/** Why one failed: the machine's fault, the fault of what it was to run, or nothing happened. */
export const FAILURE_CLASSES = ['INFRA_FATAL', 'WORKLOAD_FATAL', 'STALLED'] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

export interface Instance {
  /** Also what it is called at its provider's: by it one is found again after a lost reply. */
  id: InstanceId;
  pool: string;
  state: InstanceState;
  failure: FailureClass | null;
  /** For a person: what it waits for, or why it ended. */
  reason: string;
  /** The provider's own name for it; empty until it is known. */
  handle: string;
  /** The machine it is on, as the provider calls it; empty until it is known. */
  host: string;
  /** How many workers it brings, and what each of them has. */
  workers: number;
  resources: WorkerResources;
  /** It was sized for these, which are placed on it when it joins; empty: for any work. */
  tasks: TaskId[];
  /** Whose work alone it takes, as `tenant/user`; empty: anybody's. */
  runAs: string;
  /** What an hour of it costs, and what it has cost, in millionths. */
  priceHourMicros: number;
  spentMicros: number;
  /** Until when it is paid for; null: nothing was due yet. */
  paidUntilMs: number | null;
  /** How long it was asked for; 0: no limit. */
  timeLimitMs: number;
  /** When the provider thinks it starts. */
  startsAtMs: number | null;
  /** When the provider ends it; null: not known, or never. */
  endsAtMs: number | null;
  /** How often its provider started it again by itself. */
  restarts: number;
  /** What it was launched with, such as a rendered template; without secrets. */
  script: string;
  createdAtMs: number;
  requestedAtMs: number | null;
  /** Since when it runs at the provider's. */
  runningAtMs: number | null;
  joinedAtMs: number | null;
  /** Since when it is to be gone. */
  destroyAtMs: number | null;
  endedAtMs: number | null;
  version: number;
}

/** Those that were asked for with one call share what is before the dot. */
export function batchOf(id: InstanceId): string {
  const dot = id.indexOf('.');
  return dot < 0 ? id : id.slice(0, dot);
}
