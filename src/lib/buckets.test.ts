/** Few numbers for many: nothing is lost of their least, most, mean and count. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Buckets, merge } from './buckets.ts';

const numbers = fc.array(
  fc.record({ atMs: fc.integer({ min: 0, max: 10_000_000 }), value: fc.integer({ max: 1e6 }) }),
  { minLength: 1, maxLength: 300 },
);

test('any numbers at any times: at most so many buckets, in order, and the same in sum', () => {
  fc.assert(
    fc.property(numbers, fc.integer({ min: 1, max: 20 }), (all, most) => {
      const buckets = new Buckets(most);
      for (const { atMs, value } of all) buckets.add(atMs, value);
      const list = buckets.list();
      expect(list.length).toBeLessThanOrEqual(most);
      expect(list.map(({ atMs }) => atMs)).toEqual(
        list.map(({ atMs }) => atMs).toSorted((a, b) => a - b),
      );
      const whole = list.reduce(merge);
      const values = all.map(({ value }) => value);
      expect(whole).toMatchObject({
        count: all.length,
        min: Math.min(...values),
        max: Math.max(...values),
        atMs: Math.max(...all.map(({ atMs }) => atMs)),
      });
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      expect(Math.abs(whole.mean - mean)).toBeLessThan(1e-3 + Math.abs(mean) * 1e-9);
    }),
  );
});

test('few numbers stay as they are; of two at one time the later one is the last', () => {
  const buckets = new Buckets(3);
  buckets.add(1000, 5, 1);
  buckets.add(2000, 7, 2);
  buckets.add(2000, 6, 3);
  expect(buckets.list()).toEqual([
    { atMs: 1000, count: 1, min: 5, mean: 5, max: 5, last: 5, step: 1 },
    { atMs: 2000, count: 2, min: 6, mean: 6.5, max: 7, last: 6, step: 3 },
  ]);
});
