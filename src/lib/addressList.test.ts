/** Lists of addresses: networks of both kinds, IPv4 within IPv6, and what is no entry. */
import { expect, test } from 'vitest';
import { addressList, addressProblem } from './addressList.ts';
import { isLoopback } from './loopback.ts';

test('networks and single addresses of both kinds', () => {
  const list = addressList(['10.0.0.0/8', '192.0.2.7', 'fd00::/8', '2001:db8::1']);
  const inside = ['10.255.0.1', '::ffff:10.1.2.3', '192.0.2.7', 'fdff::1%eth0', '2001:db8::1'];
  const outside = ['11.0.0.1', '::ffff:11.1.2.3', '192.0.2.8', 'fe80::1', '2001:db8::2', '', 'x'];
  expect(inside.filter((address) => !list.has(address))).toEqual([]);
  expect(outside.filter((address) => list.has(address))).toEqual([]);
  expect([list.isEmpty, addressList([]).isEmpty, addressList([]).has('10.0.0.1')]).toEqual([
    false,
    true,
    false,
  ]);
});

test('all of IPv4, and an IPv4 network written as IPv6', () => {
  expect(addressList(['0.0.0.0/0']).has('::ffff:203.0.113.9')).toBe(true);
  expect(addressList(['0.0.0.0/0']).has('2001:db8::1')).toBe(false);
  const mapped = addressList(['::ffff:10.0.0.0/104']);
  expect([mapped.has('10.1.2.3'), mapped.has('11.1.2.3')]).toEqual([true, false]);
});

test.each([
  ['10.0.0.0/33', 'from 0 to 32'],
  ['fd00::/129', 'from 0 to 128'],
  ['10.0.0.0/', 'from 0 to 32'],
  ['10.0.0.0/-1', 'from 0 to 32'],
  ['10.0.0.0/8/8', 'from 0 to 32'],
  ['10.0.0', 'no IP address'],
  ['lab.example.org', 'no IP address'],
  ['', 'no IP address'],
])('%j is no entry: %s', (entry, words) => {
  expect(addressProblem(entry)).toContain(words);
});

test('what stays on this machine', () => {
  const own = ['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]', '::ffff:127.0.0.1'];
  const others = ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.org', '128.0.0.1', ''];
  expect(own.filter((host) => !isLoopback(host))).toEqual([]);
  expect(others.filter((host) => isLoopback(host))).toEqual([]);
});
