/**
 * How long ago something was, whatever people and NTP do to the wall clock in between. Times on
 * disk are wall time; from when this process first sees one, only the boot clock counts.
 */
import type { Clock } from '../../lib/clock.ts';

interface Seen {
  sinceMs: number;
  atBootMs: number;
  ageMs: number;
}

export class Ages {
  readonly #seen = new Map<string, Seen>();

  /** `key` names the thing and which of its times it is. */
  of(key: string, sinceMs: number, clock: Clock): number {
    const seen = this.#seen.get(key);
    if (seen?.sinceMs === sinceMs) return seen.ageMs + clock.bootMs() - seen.atBootMs;
    const ageMs = Math.max(0, clock.now() - sinceMs);
    this.#seen.set(key, { sinceMs, atBootMs: clock.bootMs(), ageMs });
    return ageMs;
  }

  keep(has: (key: string) => boolean): void {
    for (const key of this.#seen.keys()) if (!has(key)) this.#seen.delete(key);
  }
}
