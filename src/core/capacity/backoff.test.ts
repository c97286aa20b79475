/** How long a pool holds back, and how many it tries. */
import { expect, test } from 'vitest';
import {
  failed,
  FRESH_BACKOFF,
  launched,
  LONGEST_BACKOFF_MS,
  LONGEST_RETRY_AFTER_MS,
  SHORTEST_BACKOFF_MS,
  succeeded,
  type Backoff,
  type LaunchFailure,
} from './backoff.ts';

const NOW = 1_000_000;
const POOL = { cooldownMs: 10_000, maxPending: 16 };

function fail(backoff: Backoff, more: Partial<LaunchFailure> = {}, pool = POOL): Backoff {
  const failure = { nowMs: NOW, error: 'no', configuration: false, retryAfterMs: 0, ...more };
  return failed(backoff, failure, pool);
}

test('the window halves with each failure and grows by one with each join', () => {
  let backoff = FRESH_BACKOFF;
  const windows = Array.from({ length: 6 }, () => {
    backoff = fail(backoff, { nowMs: backoff.notBeforeMs });
    return backoff.window;
  });
  expect(windows).toEqual([8, 4, 2, 1, 1, 1]);
  backoff = succeeded(backoff, backoff.notBeforeMs, POOL.maxPending);
  expect(backoff).toMatchObject({ window: 2, failuresInRow: 0, error: '', notBeforeMs: 0 });
  for (let joins = 0; joins < 100; joins++) backoff = succeeded(backoff, NOW, POOL.maxPending);
  expect(backoff.window).toBe(POOL.maxPending);
});

test('failures in a row wait twice as long each, up to the longest', () => {
  let backoff = FRESH_BACKOFF;
  const waits = Array.from({ length: 40 }, () => {
    backoff = fail({ ...backoff, notBeforeMs: 0 });
    return backoff.notBeforeMs - NOW;
  });
  expect(waits.slice(0, 4)).toEqual([10_000, 20_000, 40_000, 80_000]);
  expect(waits.at(-1)).toBe(LONGEST_BACKOFF_MS);
});

test('what only a person can mend waits longest at once', () => {
  const backoff = fail(FRESH_BACKOFF, { configuration: true, error: 'invalid partition' });
  expect(backoff.notBeforeMs).toBe(NOW + LONGEST_BACKOFF_MS);
  expect(backoff.error).toBe('invalid partition');
});

test('a provider may ask for more time, within reason, and for no less', () => {
  expect(fail(FRESH_BACKOFF, { retryAfterMs: 70_000 }).notBeforeMs).toBe(NOW + 70_000);
  expect(fail(FRESH_BACKOFF, { retryAfterMs: 1 }).notBeforeMs).toBe(NOW + 10_000);
  const week = fail(FRESH_BACKOFF, { retryAfterMs: 7 * 24 * 3_600_000 });
  expect(week.notBeforeMs).toBe(NOW + LONGEST_RETRY_AFTER_MS);
});

test('a pool without a cooldown still waits, and a late failure never shortens the wait', () => {
  const eager = fail(FRESH_BACKOFF, {}, { cooldownMs: 0, maxPending: 1 });
  expect(eager).toMatchObject({ window: 1, notBeforeMs: NOW + SHORTEST_BACKOFF_MS });
  const broken = fail(FRESH_BACKOFF, { configuration: true });
  expect(fail(broken).notBeforeMs).toBe(broken.notBeforeMs);
});

test('machines of one launch that fail together are one failure', () => {
  let backoff = FRESH_BACKOFF;
  for (let machine = 0; machine < 50; machine++) backoff = fail(backoff, { nowMs: NOW + machine });
  expect(backoff).toMatchObject({ window: 8, failuresInRow: 1, notBeforeMs: NOW + 10_000 });
});

test('a machine that joins does not end a wait that its provider asked for', () => {
  const limited = fail(FRESH_BACKOFF, { retryAfterMs: 70_000, error: '429' });
  const joined = succeeded(limited, NOW + 1000, POOL.maxPending);
  expect(joined).toMatchObject({ notBeforeMs: NOW + 70_000, error: '429', window: 9 });
});

test('a page of HTML is cut, and a launch remembers when it was', () => {
  expect(fail(FRESH_BACKOFF, { error: '<html>'.repeat(1000) }).error).toHaveLength(500);
  expect(launched(FRESH_BACKOFF, NOW).lastLaunchAtMs).toBe(NOW);
});
