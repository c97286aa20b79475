/** Envelopes open with the key that closed them, for whom they were closed, and not otherwise. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { systemRandom } from '../lib/random.ts';
import { envelopeContext, open, readMasterKeys, seal } from './seal.ts';

const line = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
const old = line('k1');
const ada = envelopeContext({ tenant: 't', issuer: 'https://i', subject: 'ada' });
const bob = envelopeContext({ tenant: 't', issuer: 'https://i', subject: 'bob' });

test('what is sealed shows nothing, and no two are alike', () => {
  const keys = readMasterKeys(`${old}\n`, 'f');
  const [first, second] = [1, 2].map(() => seal(keys, 'refresh-me', ada, systemRandom));
  expect(first).not.toBe(second);
  for (const text of [first!, Buffer.from(first!, 'base64').toString('latin1')]) {
    expect(text).not.toContain('refresh-me');
  }
  expect(open(keys, first!, ada)).toBe('refresh-me');
});

test('a new key closes, the old one still opens, a missing one is named', () => {
  const sealed = seal(readMasterKeys(old, 'f'), 'x', ada, systemRandom);
  const both = readMasterKeys(`# newest first\n${line('k2')}\n${old}\n`, 'f');
  expect(open(both, sealed, ada)).toBe('x');
  expect(seal(both, 'x', ada, systemRandom)).toMatch(/^v1\.k2\./);
  const later = readMasterKeys(line('k2'), 'f');
  expect(() => open(later, sealed, ada)).toThrow('"k1" is not in exchange.masterKeyFile');
  expect(() => open(readMasterKeys(line('k1'), 'f'), sealed, ada)).toThrow();
});

test('moved to somebody else, changed in one place or cut, it stays closed', () => {
  const keys = readMasterKeys(old, 'f');
  const sealed = seal(keys, 'refresh-me', ada, systemRandom);
  expect(() => open(keys, sealed, bob)).toThrow();
  const parts = sealed.split('.');
  for (const at of [2, 3]) {
    const bytes = Buffer.from(parts[at]!, 'base64url');
    bytes[bytes.length - 1]! ^= 1;
    const changed = parts.with(at, bytes.toString('base64url')).join('.');
    expect(() => open(keys, changed, ada)).toThrow();
    expect(() => open(keys, parts.with(at, '').join('.'), ada)).toThrow();
  }
  expect(() => open(keys, sealed.replace('v1', 'v9'), ada)).toThrow('another version');
});

test.each([
  ['', 'holds no key'],
  ['k1', 'not ID:KEY'],
  ['k1:c2hvcnQ=', 'not ID:KEY'],
  [`${old}\n${old}`, '"k1" twice'],
])('a key file like %j is refused', (text, why) => {
  expect(() => readMasterKeys(text, '/etc/keys')).toThrow(why);
});
