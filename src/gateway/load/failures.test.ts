/** Whom a failed authentication is counted for, and how many are borne. */
import { expect, test } from 'vitest';
import { Failures, MOST_ADDRESSES, networkOf } from './failures.ts';

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::6', '2001:db8:0:0'],
  ['', ''],
])('%s is counted for %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test('many are borne, then it takes as long as it says', () => {
  const failures = new Failures(5);
  for (let i = 0; i < 300; i++) {
    expect(failures.waitMs('a', 0)).toBe(0);
    failures.note('a', 0);
  }
  const waitMs = failures.waitMs('a', 0);
  expect(waitMs).toBe(200);
  expect(failures.waitMs('b', 0)).toBe(0);
  // Those that were under way make no debt.
  for (let i = 0; i < 1000; i++) failures.note('a', 0);
  expect(failures.waitMs('a', waitMs)).toBe(0);
});

test('the oldest addresses are forgotten; 0 counts nobody', () => {
  const failures = new Failures(5);
  for (let i = 0; i < 300; i++) failures.note('bad', 0);
  for (let i = 0; i < MOST_ADDRESSES - 1; i++) failures.note(`once-${i}`, 0);
  expect(failures.waitMs('bad', 0)).toBeGreaterThan(0);
  failures.note('another', 0);
  expect(failures.size).toBe(MOST_ADDRESSES);
  expect(failures.waitMs('bad', 0)).toBe(0);

  const none = new Failures(0);
  for (let i = 0; i < 1000; i++) none.note('a', 0);
  expect(none.waitMs('a', 0)).toBe(0);
});
