/** What no database can hold never reaches one: a NUL ended a controller on PostgreSQL. */
import { expect, test } from 'vitest';
import { observation } from './agent.ts';
import { createToken } from './fleet.ts';
import { listJobsQuery } from './jobs.ts';
import { storable } from './texts.ts';

test.each(['name', 'user', 'tenant', 'pool'])(
  'a token with a NUL in its %s is refused',
  (field) => {
    expect(createToken.safeParse({ [field]: 'a\0b' }).success).toBe(false);
    expect(createToken.safeParse({ [field]: 'half \ud800' }).success).toBe(false);
    expect(createToken.safeParse({ [field]: 'whole 🚜' }).success).toBe(true);
  },
);

test.each(['name', 'owner', 'parent'])('nor is a job looked for by such a %s', (field) => {
  expect(listJobsQuery.safeParse({ [field]: 'a\0b' }).success).toBe(false);
});

test('what agents say is kept without it', () => {
  const said = { uid: 'u', state: 'RUNNING', message: 'a\0b', facts: { 'k\0': 'v\ud800' } };
  expect(observation.parse(said)).toMatchObject({
    message: 'a\uFFFDb',
    facts: { 'k\uFFFD': 'v\uFFFD' },
  });
  expect(storable('as it is')).toBe('as it is');
});
