/** I13 too: a job that waits for others begins nothing before they have ended as wanted. */
import type { After } from '../../../src/model/job.ts';
import { unpackSpec } from '../../../src/model/spec.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

export class AfterChecker {
  readonly #mirror: Mirror;
  /** What users asked for, by job: what is stored may leave out what was met already. */
  readonly #wanted = new Map<string, After[]>();
  readonly #begun = new Set<string>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  committed({ attempts }: Commit): void {
    for (const { before, row } of attempts) {
      if (before || this.#begun.has(row.job)) continue;
      this.#begun.add(row.job);
      const { after } = unpackSpec(this.#mirror.jobs.get(row.job)?.spec ?? '{}');
      this.#check(row.job, [...after, ...(this.#wanted.get(row.job) ?? [])]);
    }
  }

  /** A user was told that this job waits for those. */
  asked(job: string, after: After[]): void {
    this.#wanted.set(job, after);
    if (this.#begun.has(job)) this.#check(job, after);
  }

  /** A user was told that what he waits for can never come. */
  refused(after: After[]): void {
    const never = after.some(({ job, when }) => this.#howEnded(job, when) === 'otherwise');
    must(never, 'I13', () => `refused to wait for ${after.map(({ job }) => job).join(' ')}`);
  }

  #check(job: string, after: After[]): void {
    for (const { job: other, when } of after) {
      const how = this.#howEnded(other, when);
      must(how === 'as wanted', 'I13', () => `${job} began after ${other}: ${when}, it is ${how}`);
    }
  }

  #howEnded(job: string, when: After['when']): 'not over' | 'as wanted' | 'otherwise' {
    const row = this.#mirror.jobs.get(job);
    if (!row || row.ended_at_ms === null) return 'not over';
    if (when === 'any') return 'as wanted';
    return (row.end_state === 'SUCCEEDED') === (when === 'ok') ? 'as wanted' : 'otherwise';
  }
}
