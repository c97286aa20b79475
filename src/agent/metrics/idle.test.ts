/** When devices count as idle. */
import { expect, test } from 'vitest';
import { IdleWatch } from './idle.ts';

const PERIOD_MS = 10_000;
const rule = { belowPercent: 5, forMs: 60_000, action: 'warn' as const };

/** One sample each period; whether it is idle after each. */
function judge(percents: number[], watch = new IdleWatch(rule, PERIOD_MS), from = 0): boolean[] {
  return percents.map((percent, n) => watch.add(from + n * PERIOD_MS, percent) !== undefined);
}

test('only after the whole time, and by the mean of it', () => {
  expect(judge([0, 0, 0, 0, 0, 0, 0])).toEqual([false, false, false, false, false, false, true]);
  expect(judge([90, 0, 0, 0, 0, 0, 0, 0])).toEqual([...Array(7).fill(false), true]);
  // Short bursts keep it busy on average.
  expect(judge([0, 0, 40, 0, 0, 0, 0, 0])).not.toContain(true);
  expect(judge(Array(20).fill(5))).not.toContain(true);
});

test('over as soon as the mean is up again', () => {
  const watch = new IdleWatch(rule, PERIOD_MS);
  expect(judge(Array(8).fill(1), watch).at(-1)).toBe(true);
  expect(judge([100], watch, 8 * PERIOD_MS)).toEqual([false]);
});

test('what was not seen is not idle: after a gap, or a clock set back, it begins anew', () => {
  const watch = new IdleWatch(rule, PERIOD_MS);
  judge(Array(6).fill(0), watch);
  expect(judge(Array(6).fill(0), watch, 200_000)).not.toContain(true);
  expect(judge(Array(6).fill(0), watch, 100_000)).not.toContain(true);
});
