/** What a pool may say of SaladCloud, and what is refused. */
import { expect, it } from 'vitest';
import { saladPool } from './saladSettings.ts';

const LEAST = { organization: 'a-lab', project: 'gpus', image: 'debian:13' };

it('needs an organization, a project and an image', () => {
  expect(saladPool.parse(LEAST)).toMatchObject({ priority: 'high', requestsPerMinute: 120 });
  for (const key of Object.keys(LEAST)) {
    expect(saladPool.safeParse({ ...LEAST, [key]: undefined }).success, key).toBe(false);
  }
});

it.each([
  ['the key itself', { apiKey: 'secret' }],
  ['a name with capitals', { organization: 'A Lab' }],
  ['an address without TLS', { url: 'http://api.salad.example/api/public' }],
  ['an address with a password', { url: 'https://me:secret@api.salad.example' }],
  ['a variable that is too long', { environment: { LONG: 'x'.repeat(1001) } }],
  ['a variable of odd name', { environment: { 'A B': 'x' } }],
  ['more requests than a key has', { requestsPerMinute: 161 }],
  ['no memory', { memoryBytes: 1024 }],
  ['a country in words', { countryCodes: ['Germany'] }],
])('refuses %s', (_what, more) => {
  expect(saladPool.safeParse({ ...LEAST, ...more }).success).toBe(false);
});
