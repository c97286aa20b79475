/** Who waits for a place in prospect: a task, or a gang as a whole. */
import type { AttemptUid, JobId } from '../../model/ids.ts';
import type { PendingClass } from './classes.ts';
import type { Booked } from './view.ts';

export interface Nomination {
  job: JobId;
  of: PendingClass;
  claims: Map<AttemptUid, Booked>;
}

export class Nominations {
  readonly #byKey = new Map<string, Nomination>();

  get size(): number {
    return this.#byKey.size;
  }

  values(): Iterable<Nomination> {
    return this.#byKey.values();
  }

  ofJob(job: JobId): Nomination[] {
    return [...this.#byKey.values()].filter((nomination) => nomination.job === job);
  }

  add(booked: Booked): void {
    const key = keyOf(booked);
    const known = this.#byKey.get(key);
    if (known) known.claims.set(booked.claim.owner, booked);
    else {
      const claims = new Map([[booked.claim.owner, booked]]);
      this.#byKey.set(key, { job: booked.job, of: booked.of, claims });
    }
  }

  /** True when it was one. */
  remove(booked: Booked): boolean {
    const key = keyOf(booked);
    const known = this.#byKey.get(key);
    if (!known?.claims.delete(booked.claim.owner)) return false;
    if (known.claims.size === 0) this.#byKey.delete(key);
    return true;
  }
}

function keyOf({ of, job, claim }: Booked): string {
  return of.request.gangSize > 1 ? job : claim.owner;
}
