/** Values in queries: what is none is refused, not guessed at. */
import { expect, test } from 'vitest';
import { pageLimit, queryTime, taskIndex, wholeNumber } from './queries.ts';

test.each([
  ['0', 0],
  ['007', 7],
  ['9007199254740991', Number.MAX_SAFE_INTEGER],
  [5, 5],
])('%j is the whole number %d', (text, value) => {
  expect(wholeNumber(0).parse(text)).toBe(value);
});

test.each(['', ' ', ' 5', '1e3', '0x10', '1.5', '-1', '9007199254740993', 'x', ['1'], null])(
  '%j is no whole number from 0 on',
  (value) => {
    expect(wholeNumber(0).safeParse(value).success).toBe(false);
  },
);

test('what is left out is the usual, or nothing', () => {
  expect(pageLimit(500, 50).parse(undefined)).toBe(50);
  expect(taskIndex.parse(undefined)).toBeUndefined();
  expect(pageLimit(500, 50).safeParse('501').success).toBe(false);
});

test.each([
  '0',
  '1763200000000',
  '2026-11-15',
  '2026-11-15T10:00Z',
  '2026-11-15T10:00:00.123+01:00',
])('%s is a time', (text) => {
  expect(queryTime.safeParse(text).success).toBe(true);
});

test.each(['', 'yesterday', '2026-13-01', '15.11.2026', '2026-11-15T25:00Z', '1'.repeat(16)])(
  '%s is no time',
  (text) => {
    expect(queryTime.safeParse(text).success).toBe(false);
  },
);
