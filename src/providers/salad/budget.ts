/** How many requests we still may make: what SaladCloud takes of a key is counted per minute. */
import type { Clock } from '../../lib/clock.ts';

const MINUTE_MS = 60_000;

export interface Budget {
  /** Takes one: null, or how long until there is one, and who has said so. */
  take(): { waitMs: number; held: boolean } | null;
  /** Nothing is taken for so long: SaladCloud said that it was too much. */
  hold(forMs: number): void;
}

export function createBudget(perMinute: number, clock: Pick<Clock, 'bootMs'>): Budget {
  const most = perMinute / 2;
  let left = most;
  let countedAtMs = clock.bootMs();
  let heldUntilMs = 0;

  return {
    take() {
      const nowMs = clock.bootMs();
      if (nowMs < heldUntilMs) return { waitMs: heldUntilMs - nowMs, held: true };
      left = Math.min(most, left + ((nowMs - countedAtMs) * perMinute) / MINUTE_MS);
      countedAtMs = nowMs;
      if (left < 1) {
        return { waitMs: Math.ceil(((1 - left) * MINUTE_MS) / perMinute), held: false };
      }
      left -= 1;
      return null;
    },
    hold(forMs) {
      heldUntilMs = Math.max(heldUntilMs, clock.bootMs() + forMs);
    },
  };
}
