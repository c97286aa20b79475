/**
 * How a pool holds back after failures. As in congestion control: each machine that joins lets one
 * more come at a time, each failure halves how many may, and failures in a row wait longer and
 * longer. So a pool that works is used in full, and one that is broken costs a call now and then.
 */

export interface Backoff {
  /** How many may come at once: grows by one with each success, halves with each failure. */
  window: number;
  failuresInRow: number;
  lastLaunchAtMs: number | null;
  /** No launch before this. */
  notBeforeMs: number;
  /** The last failure, for a person; empty: none since the last success. */
  error: string;
}

/** The longest that a pool holds back by itself; a provider may ask for more, up to a day. */
export const LONGEST_BACKOFF_MS = 15 * 60_000;
export const LONGEST_RETRY_AFTER_MS = 24 * 3_600_000;
/** Without a cooldown a broken pool would be tried all the time. */
export const SHORTEST_BACKOFF_MS = 1000;
/** As many as a pool may have on their way by its settings: nothing is known against it yet. */
const WINDOW_MOST = 10_000;
/** Of what a provider says, so that no page of HTML is kept. */
const ERROR_LENGTH = 500;

export const FRESH_BACKOFF: Backoff = Object.freeze({
  window: WINDOW_MOST,
  failuresInRow: 0,
  lastLaunchAtMs: null,
  notBeforeMs: 0,
  error: '',
});

export function launched(backoff: Backoff, nowMs: number): Backoff {
  return { ...backoff, lastLaunchAtMs: nowMs };
}

/**
 * A machine has joined. That a provider took the call says little: machines may fail later. A wait
 * that has begun goes on: it joined by an older call, and the provider may have asked for the wait.
 */
export function succeeded(backoff: Backoff, nowMs: number, maxPending: number): Backoff {
  const window = Math.min(Math.min(backoff.window, maxPending) + 1, maxPending);
  if (backoff.notBeforeMs > nowMs) return { ...backoff, window, failuresInRow: 0 };
  return { ...backoff, window, failuresInRow: 0, notBeforeMs: 0, error: '' };
}

export interface LaunchFailure {
  nowMs: number;
  /** For a person. */
  error: string;
  /** Trying again does not help before a person has changed something. */
  configuration: boolean;
  /** What the provider asked for; 0: nothing. */
  retryAfterMs: number;
}

export function failed(
  backoff: Backoff,
  { nowMs, error, configuration, retryAfterMs }: LaunchFailure,
  { cooldownMs, maxPending }: { cooldownMs: number; maxPending: number },
): Backoff {
  const asked = Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS);
  const leastMs = Math.max(asked, configuration ? LONGEST_BACKOFF_MS : 0);
  const told = {
    error: error.slice(0, ERROR_LENGTH),
    notBeforeMs: Math.max(backoff.notBeforeMs, nowMs + leastMs),
  };
  // It was launched before the wait began: fifty machines that fail together are one failure.
  if (nowMs < backoff.notBeforeMs) return { ...backoff, ...told };
  const first = Math.max(cooldownMs, SHORTEST_BACKOFF_MS);
  const own = Math.min(LONGEST_BACKOFF_MS, first * 2 ** Math.min(backoff.failuresInRow, 30));
  return {
    ...backoff,
    ...told,
    window: Math.max(1, Math.floor(Math.min(backoff.window, maxPending) / 2)),
    failuresInRow: backoff.failuresInRow + 1,
    notBeforeMs: Math.max(told.notBeforeMs, nowMs + own),
  };
}
