/** How many requests we still may make: what SaladCloud takes of a key is counted per minute. */
import type { Clock } from '../../lib/clock.ts';

const MINUTE_MS = 60_000;

export interface Budget {
  /** Takes one: 0, or how long until there is one. */
  take(): number;
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
      if (nowMs < heldUntilMs) return heldUntilMs - nowMs;
      left = Math.min(most, left + ((nowMs - countedAtMs) * perMinute) / MINUTE_MS);
      countedAtMs = nowMs;
      if (left < 1) return Math.ceil(((1 - left) * MINUTE_MS) / perMinute);
      left -= 1;
      return 0;
    },
    hold(forMs) {
      heldUntilMs = Math.max(heldUntilMs, clock.bootMs() + forMs);
    },
  };
}
