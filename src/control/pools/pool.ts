/** A pool with a provider, as it stands: what only this process knows of it. */
import { FRESH_BACKOFF, type Backoff } from '../../core/capacity/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Launch } from '../../core/capacity/capacity.ts';
import type { PoolPolicy } from '../../core/placement/admission.ts';
import type { InstanceId, WorkerId } from '../../model/ids.ts';
import type { PoolSettings } from '../../model/poolSettings.ts';
import type { WorkerResources } from '../../model/resources.ts';
import type { OtherWork, Provider } from '../../providers/contract.ts';
import { Ages } from './ages.ts';

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

  readonly asked = new Ages();
  readonly running = new Ages();
  readonly #came = new Map<WorkerId, { token: string; atBootMs: number }>();
  readonly #again = new Map<InstanceId, { what: string; atBootMs: number }>();
  #offsetMs: number | null = null;

  /** When it was first seen to be as `what` says; null: nothing of the kind goes on. */
  againAtBootMs(id: InstanceId, what: string | null, clock: Clock): number | null {
    const known = this.#again.get(id);
    if (what === null) this.#again.delete(id);
    else if (known?.what !== what) this.#again.set(id, { what, atBootMs: clock.bootMs() });
    return this.#again.get(id)?.atBootMs ?? null;
  }

  /** When this process first saw the worker with this token: it has another with every join. */
  cameAtBootMs(worker: WorkerId, token: string, clock: Clock): number {
    const known = this.#came.get(worker);
    if (known?.token === token) return known.atBootMs;
    const atBootMs = clock.bootMs();
    this.#came.set(worker, { token, atBootMs });
    return atBootMs;
  }

  /** The times here are wall time: when that was set anew, they go with it. */
  follow(clock: Clock): void {
    const offsetMs = clock.now() - clock.bootMs();
    const byMs = offsetMs - (this.#offsetMs ?? offsetMs);
    this.#offsetMs = offsetMs;
    if (byMs === 0) return;
    const { notBeforeMs, lastLaunchAtMs } = this.backoff;
    this.backoff = {
      ...this.backoff,
      notBeforeMs: notBeforeMs === 0 ? 0 : notBeforeMs + byMs,
      lastLaunchAtMs: lastLaunchAtMs === null ? null : lastLaunchAtMs + byMs,
    };
    if (this.listedAtMs !== null) this.listedAtMs += byMs;
    this.nextLookAtMs += byMs;
    for (const times of [this.idleSince, this.strangers, this.destroyAsked]) {
      for (const [key, atMs] of times) times.set(key, atMs + byMs);
    }
  }

  /** Forgets instances that have ended. */
  keep(has: (id: InstanceId) => boolean, isWorker: (id: WorkerId) => boolean): void {
    for (const id of this.#came.keys()) if (!isWorker(id)) this.#came.delete(id);
    this.asked.keep((id) => has(id as InstanceId));
    this.running.keep((id) => has(id as InstanceId));
    for (const id of this.#again.keys()) if (!has(id)) this.#again.delete(id);
    for (const id of this.joined) if (!has(id)) this.joined.delete(id);
    for (const id of this.idleSince.keys()) if (!has(id)) this.idleSince.delete(id);
  }
}
