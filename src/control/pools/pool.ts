/** A pool with a provider, as it stands: what only this process knows of it. */
import { FRESH_BACKOFF, type Backoff } from '../../core/capacity/backoff.ts';
import type { Launch } from '../../core/capacity/capacity.ts';
import type { PoolPolicy } from '../../core/placement/admission.ts';
import type { InstanceId } from '../../model/ids.ts';
import type { PoolSettings } from '../../model/poolSettings.ts';
import type { WorkerResources } from '../../model/resources.ts';
import type { OtherWork, Provider } from '../../providers/contract.ts';

export interface ManagedPool {
  name: string;
  /** `slurm`, `ssh`, `salad`. */
  kind: string;
  provider: Provider;
  policy: PoolPolicy;
  settings: PoolScaling;
  /** How long its provider lets an instance live at most; 0: for ever. */
  longestMs: number;
  /** One user's work never runs in another's allocation. */
  perUser: boolean;
}

type PoolScaling = Omit<PoolSettings, 'largestWorker' | 'slurm' | 'ssh' | 'salad'>;

/** Lost with the process: nothing here is needed to keep a promise. */
export class PoolStatus {
  backoff: Backoff = FRESH_BACKOFF;
  /** When its provider was last heard of, and what stood in the way since; empty: nothing. */
  listedAtMs: number | null = null;
  listError = '';
  /** No look before this. */
  nextLookAtMs = 0;
  /** For a person, from its provider: drift, a maintenance window. */
  notice = '';
  others: OtherWork[] = [];
  /** The least that a machine of it was seen to have; null: none has come yet. */
  smallest: WorkerResources | null = null;
  /** Instances that this process is to launch, by their batch. */
  readonly wanted = new Map<string, { launch: Launch; ids: InstanceId[] }>();
  /** Of which a call is under way. */
  readonly launching = new Set<InstanceId>();
  /** That have counted as a success. */
  readonly joined = new Set<InstanceId>();
  /** Since when nothing has run on an instance, or nothing waits for one that comes. */
  readonly idleSince = new Map<InstanceId, number>();
  /** When machines that nobody knows were first seen, by label and handle. */
  readonly strangers = new Map<string, number>();
  /** When the end of a machine was last asked for, by label and handle. */
  readonly destroyAsked = new Map<string, number>();

  /** Forgets instances that have ended. */
  keep(has: (id: InstanceId) => boolean): void {
    for (const id of this.joined) if (!has(id)) this.joined.delete(id);
    for (const id of this.idleSince.keys()) if (!has(id)) this.idleSince.delete(id);
  }
}
