/**
 * L1: after the faults are over everything accepted ends, within a time computed from the work:
 * three leases, in which all that was lost is noticed and every back-off of the storm is over, then
 * the work itself.
 */
import { LONGEST_DELAY_MS } from '../../../src/core/retry.ts';
import type { JobSpec } from '../../../src/model/job.ts';
import type { Person } from '../people.ts';
import type { Mirror } from './mirror.ts';
import { Violation } from './violation.ts';

/**
 * From a free place to the next: plan, commit, deliver, start, report, commit, and the loops
 * between.
 */
const STEP_MS = 3000;
/** A client's call may have to time out and be sent again. */
const CLIENT_MS = 20_000;
const LEASES = 3;

export interface Work {
  person: Person;
  spec: JobSpec;
  tasks: number;
  /** The longest that one try can run by itself. */
  longestRunMs: number;
}

/** Every task as if it used all its tries, one more for what the storm took, one after another. */
export function boundMs(work: readonly Work[], leaseMs: number): number {
  let longestLeaseMs = leaseMs;
  let totalMs = 0;
  let longestChainMs = 0;
  for (const { spec, tasks, longestRunMs } of work) {
    longestLeaseMs = Math.max(longestLeaseMs, spec.attemptLeaseMs);
    const tryMs = longestRunMs + spec.graceMs + STEP_MS;
    const tries = spec.retries + 2;
    totalMs += tries * tryMs * tasks;
    let backOffMs = LONGEST_DELAY_MS;
    for (let k = 0; k < spec.retries; k++) backOffMs += Math.min(LONGEST_DELAY_MS, 1000 * 2 ** k);
    const chainMs = tries * tryMs + backOffMs;
    // Whoever waits for others has their back-offs before its own.
    if (spec.after.length > 0) totalMs += chainMs;
    longestChainMs = Math.max(longestChainMs, chainMs);
  }
  return LEASES * longestLeaseMs + CLIENT_MS + totalMs + longestChainMs;
}

export class LivenessChecker {
  readonly #mirror: Mirror;
  readonly #acknowledged: Set<string>;

  constructor(mirror: Mirror, acknowledged: Set<string>) {
    this.#mirror = mirror;
    this.#acknowledged = acknowledged;
  }

  /** How much of what was accepted has not ended, or still holds something. */
  pending(): number {
    let pending = this.#mirror.claims.size;
    for (const id of this.#acknowledged) {
      if (this.#mirror.jobs.get(id)?.ended_at_ms === null) pending++;
    }
    return pending;
  }

  late(afterMs: number): void {
    const bound = `${Math.round(afterMs / 1000)} s after the faults`;
    for (const id of this.#acknowledged) {
      if (this.#mirror.jobs.get(id)?.ended_at_ms !== null) continue;
      throw new Violation('L1', `job ${id} has not ended ${bound}`);
    }
    for (const owner of this.#mirror.claims.keys()) {
      throw new Violation('L1', `claim ${owner} is still held ${bound}`);
    }
  }
}
