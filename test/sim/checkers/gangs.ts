/** I8: members of a gang are assigned, or nominated, in one batch, all or none. */
import { unpackSpec } from '../../../src/model/spec.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

export class GangChecker {
  readonly #mirror: Mirror;
  readonly #sizes = new Map<string, number>();
  readonly #nominated = new Map<string, Set<string>>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  committed({ jobs, attempts, claims, freed }: Commit): void {
    for (const { before, row } of jobs) {
      if (before) continue;
      const { shape } = unpackSpec(row.spec);
      if (shape.kind === 'gang') this.#sizes.set(row.id, shape.size);
    }
    // A slow batch may hold the whole of one round and the beginning of the next.
    const begun = new Map<string, { job: string; round: number; count: number }>();
    for (const { before, row } of attempts) {
      if (before || !this.#sizes.has(row.job)) continue;
      const key = `${row.job} ${row.round}`;
      const known = begun.get(key) ?? { job: row.job, round: row.round, count: 0 };
      known.count++;
      begun.set(key, known);
    }
    for (const { job, count, round } of begun.values()) this.#checkRound(job, count, round);
    this.#countNominated(claims, freed);
  }

  #countNominated(claims: Commit['claims'], freed: Commit['freed']): void {
    const touched = new Map<string, Set<string>>();
    const count = (owner: string, nominated: boolean): void => {
      const job = owner.slice(0, owner.indexOf('.'));
      if (!this.#sizes.has(job)) return;
      const owners = this.#nominated.get(job) ?? new Set();
      this.#nominated.set(job, owners);
      touched.set(job, owners);
      if (nominated) owners.add(owner);
      else owners.delete(owner);
    };
    for (const { owner } of freed) count(owner, false);
    for (const { row } of claims) count(row.owner, row.state === 'NOMINATED');
    for (const [job, { size }] of touched) {
      const whole = size === 0 || size === this.#sizes.get(job);
      must(whole, 'I8', () => `${size} members of gang ${job} are nominated`);
    }
  }

  #checkRound(job: string, count: number, round: number): void {
    const size = this.#sizes.get(job);
    must(count === size, 'I8', () => `${count} of ${size} members of gang ${job} began`);
    const current = this.#mirror.jobs.get(job)?.round ?? -1;
    // A member may have failed in the same batch; no round begins late.
    must(round <= current, 'I8', () => `gang ${job} began round ${round} in ${current}`);
  }
}
