/**
 * I13: once a cancel is on disk no attempt of the job begins, and it is there when it is
 * acknowledged.
 */
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

export class CancelChecker {
  readonly #mirror: Mirror;
  readonly #cancelled = new Set<string>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  cancelled(id: string): void {
    const row = this.#mirror.jobs.get(id);
    const durable = !!row && (row.cancel_requested_at_ms !== null || row.ended_at_ms !== null);
    must(durable, 'I13', () => `the cancel of ${id} was acknowledged, not committed`);
  }

  committed({ attempts, jobs }: Commit): void {
    for (const { before, row } of attempts) {
      const late = !before && this.#cancelled.has(row.job);
      must(!late, 'I13', () => `attempt ${row.uid} began after the cancel of its job`);
    }
    // Only now: one batch may hold the beginning of an attempt and then the cancel.
    for (const { row } of jobs)
      if (row.cancel_requested_at_ms !== null) this.#cancelled.add(row.id);
  }
}
