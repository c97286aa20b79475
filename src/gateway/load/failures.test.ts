/** Whom a failed authentication is counted for, and how many are borne. */
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { addressOf, Failures, MOST_ADDRESSES } from './failures.ts';

function from(remoteAddress: string, forwarded?: string): IncomingMessage {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  return { headers, socket: { remoteAddress } } as unknown as IncomingMessage;
}

test.each([
  ['itself', from('192.0.2.7'), '192.0.2.7'],
  ['an IPv4 address written as IPv6', from('::ffff:192.0.2.7'), '192.0.2.7'],
  ['the network of an IPv6 address', from('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2'],
  ['the same of a short one', from('2001:db8::6'), '2001:db8:0:0'],
  ['what a proxy here saw', from('127.0.0.1', '10.0.0.1, 192.0.2.9'), '192.0.2.9'],
  ['not what a stranger claims', from('192.0.2.7', '10.0.0.1'), '192.0.2.7'],
])('counted for %s', (_, request, address) => {
  expect(addressOf(request)).toBe(address);
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
