/** Prices, holds and the calendar of budgets. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { costOf, dayOf, holdMs, HOUR_MS, monthOf, priceOf } from './money.ts';

test('days and months are those of the calendar in UTC', () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 42), max: 2 ** 43 }), (ms) => {
      const date = new Date(ms);
      expect(monthOf(ms)).toBe(date.getUTCFullYear() * 12 + date.getUTCMonth());
      expect(new Date(dayOf(ms) * 24 * HOUR_MS).toISOString().slice(0, 10)).toBe(
        date.toISOString().slice(0, 10),
      );
    }),
    { numRuns: 2000 },
  );
});

test('a price counts shares of devices and of cores', () => {
  const price = { deviceHourMicros: 2_000_000, cpuHourMicros: 100_000 };
  expect(priceOf({ devices: [0], share: 500, cpuMillis: 2000 }, price)).toBe(1_200_000);
  expect(priceOf({ devices: [0, 1], share: 1000, cpuMillis: 0 }, price)).toBe(4_000_000);
  expect(priceOf({ devices: [], share: 1000, cpuMillis: 500 }, price)).toBe(50_000);
});

test('an hour is set aside, or less where the limit is less', () => {
  expect([0, 1000, 10 * HOUR_MS].map(holdMs)).toEqual([HOUR_MS, 1000, HOUR_MS]);
});

test('parts of a time cost what the whole costs', () => {
  const price = fc.nat({ max: 10 ** 12 });
  fc.assert(
    fc.property(price, fc.array(fc.nat({ max: HOUR_MS }), { maxLength: 10 }), (micros, parts) => {
      let [ms, paid] = [0, 0];
      for (const part of parts) {
        ms += part;
        const due = costOf(micros, ms) - paid;
        expect(due).toBeGreaterThanOrEqual(0);
        paid += due;
      }
      expect(paid).toBe(costOf(micros, ms));
    }),
  );
});
