/** A worker: the registration of one agent. */
import type { HealthProblem } from './health.ts';
import type { InstanceId, WorkerId } from './ids.ts';
import type { WorkerTerms } from './placement.ts';
import type { WorkerResources } from './resources.ts';

export const WORKER_STATES = ['ONLINE', 'SUSPECT', 'LOST'] as const;
export type WorkerState = (typeof WORKER_STATES)[number];

export interface Worker {
  id: WorkerId;
  name: string;
  pool: string;
  /** Identity of the machine (and slot on it): a rejoin with the same one supersedes. */
  machine: string;
  bootId: string;
  /** Where other members of a gang reach this worker's tasks. */
  address: string;
  /** Workers on the same network can reach each other. */
  network: string;
  resources: WorkerResources;
  attributes: Record<string, string>;
  /** What its agent demands of the work it takes; its pool may demand more. */
  terms: WorkerTerms;
  agentVersion: string;
  /** The physical machine, as reputation knows it. */
  host: string;
  /** Null: it came by itself. */
  instance: InstanceId | null;
  /** When its machine ends; null: never, as far as anybody knows. */
  endsAtMs: number | null;
  /** What its agent has found wrong with the machine. */
  problems: HealthProblem[];
  state: WorkerState;
  draining: boolean;
  tokenHash: string;
  joinToken: string;
  joinedAtMs: number;
  endedAtMs: number | null;
  version: number;
}

/** The attribute of one that began with an empty disk: another word means that it did so again. */
export const BEGUN = 'begun';
