/** Token buckets: rate, burst, and that the time they name is the time it takes. */
import { expect, test } from 'vitest';
import { Bucket } from './bucket.ts';

const ten = { perSecond: 10, burst: 20 };

function take(bucket: Bucket, count: number, nowMs: number): number {
  const waitMs = bucket.waitMs(count, nowMs);
  if (waitMs === 0) bucket.spend(count);
  return waitMs;
}

test('a burst passes at once, then only the rate', () => {
  const bucket = new Bucket(ten, 0);
  for (let i = 0; i < 20; i++) expect(take(bucket, 1, 0)).toBe(0);
  expect(take(bucket, 1, 0)).toBe(100);
  let passed = 0;
  for (let nowMs = 0; nowMs < 10_000; nowMs += 7) if (take(bucket, 1, nowMs) === 0) passed++;
  expect(passed).toBeGreaterThanOrEqual(98);
  expect(passed).toBeLessThanOrEqual(100);
});

test('what it says to wait is enough, and a millisecond less is not', () => {
  const bucket = new Bucket(ten, 0);
  bucket.spend(20);
  const waitMs = bucket.waitMs(5, 0);
  expect(waitMs).toBe(500);
  expect(bucket.waitMs(5, waitMs - 1)).toBeGreaterThan(0);
  expect(bucket.waitMs(5, waitMs)).toBe(0);
});

test('more than a burst passes once, from a full bucket, and is paid for afterwards', () => {
  const bucket = new Bucket(ten, 0);
  expect(take(bucket, 50, 0)).toBe(0);
  expect(bucket.left).toBe(0);
  // 30 of debt and one to come.
  expect(bucket.waitMs(1, 0)).toBe(3100);
  expect(bucket.waitMs(50, 0)).toBe(5000);
  expect(bucket.waitMs(50, 5000)).toBe(0);
});

test('a time that lies before the last one neither gives nor takes', () => {
  const bucket = new Bucket(ten, 1000);
  bucket.spend(20);
  expect(bucket.waitMs(1, 500)).toBe(100);
  expect(bucket.waitMs(1, 1100)).toBe(0);
  expect(bucket.isLow(1100)).toBe(true);
  expect(bucket.isFull(1500)).toBe(false);
  expect(bucket.isFull(60_000)).toBe(true);
});
