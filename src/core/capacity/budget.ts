/** How many machines a pool may launch now, and why not more. */
import { holdMs } from '../money.ts';
import type { CapacityInstance, CapacityPool } from './capacity.ts';
import {
  atMost,
  coolsDown,
  holdsBack,
  pendingMost,
  spent,
  windowMost,
  type PoolReason,
} from './reasons.ts';

/**
 * `full`: there is no telling when it may, so others are asked. `later`: it will as soon as those
 * on their way have joined, and waiting for it is cheaper than a dearer pool.
 */
export type Verdict = { kind: 'may' } | { kind: 'full' | 'later'; reason: PoolReason };

const MAY: Verdict = { kind: 'may' };

export class Budget {
  readonly pool: CapacityPool;
  readonly #nowMs: number;
  /** All that have not ended: also one that leaves is still there, and may still cost. */
  #live: number;
  #pending: number;
  #reservedMicros = 0;

  constructor(pool: CapacityPool, nowMs: number) {
    this.pool = pool;
    this.#nowMs = nowMs;
    this.#live = pool.instances.length;
    this.#pending = pool.instances.filter(({ state }) => state === 'coming').length;
    if (!pool.spend) return;
    for (const instance of pool.instances) this.#reservedMicros += keptFor(pool, instance);
  }

  /** Whether so many more may be launched together. */
  mayLaunch(machines: number, timeLimitMs: number): Verdict {
    const { pool } = this;
    const { backoff, max, maxPending, cooldownMs } = pool;
    if (backoff.notBeforeMs > this.#nowMs) return { kind: 'full', reason: holdsBack(pool) };
    if (this.#live + machines > max) {
      return { kind: 'full', reason: atMost(pool, this.#live, machines) };
    }
    const tooDear = this.#tooDear(machines, timeLimitMs);
    if (tooDear) return { kind: 'full', reason: tooDear };
    if (this.#pending + machines > maxPending) {
      // More at once than may ever come at once: waiting does not help.
      const kind = machines > maxPending ? 'full' : 'later';
      return { kind, reason: pendingMost(pool, this.#pending, maxPending, machines) };
    }
    // A gang comes whole or not at all: alone it may, else a small window would stop it for ever.
    if (this.#pending > 0 && this.#pending + machines > backoff.window) {
      return { kind: 'full', reason: windowMost(pool, this.#pending) };
    }
    // Between two plans that launch: what one plan launches belongs together.
    const { lastLaunchAtMs } = backoff;
    if (lastLaunchAtMs !== null && lastLaunchAtMs + cooldownMs > this.#nowMs) {
      return { kind: 'later', reason: coolsDown(pool, lastLaunchAtMs + cooldownMs) };
    }
    return MAY;
  }

  launched(machines: number, timeLimitMs: number): void {
    this.#live += machines;
    this.#pending += machines;
    this.#reservedMicros += machines * reserveMicros(this.pool, timeLimitMs);
  }

  #tooDear(machines: number, timeLimitMs: number): PoolReason | null {
    const { spend } = this.pool;
    if (!spend) return null;
    const neededMicros = machines * reserveMicros(this.pool, timeLimitMs);
    if (neededMicros === 0 && spend.leftMicros > 0) return null;
    if (this.#reservedMicros + neededMicros <= spend.leftMicros) return null;
    return spent(this.pool, spend, { micros: this.#reservedMicros, neededMicros });
  }
}

/**
 * What is set aside of the pool's limit for an instance: an hour, or its time limit where that is
 * less, in whole quanta; as much as a job sets aside of its tenant's budget. One quantum alone
 * would let a pool with a limit for the hour start sixty times as many as it can keep, and end them
 * all a minute later; a job's whole time would keep work of ten hours from ever starting under a
 * limit for the hour, although it never breaks it. What is set aside for those that are there
 * counts as well, so that all of it together never is above what is left.
 */
function reserveMicros(pool: CapacityPool, timeLimitMs: number): number {
  const { quantumMs, quantumMicros } = pool;
  const quanta = quantumMs > 0 ? Math.ceil(holdMs(timeLimitMs) / quantumMs) : 1;
  return Math.max(1, quanta) * quantumMicros;
}

function keptFor(pool: CapacityPool, { state, timeLimitMs }: CapacityInstance): number {
  // Until its provider has let it go, it may be billed once more.
  return state === 'leaving' ? pool.quantumMicros : reserveMicros(pool, timeLimitMs);
}
