/** The token cache: how long, how many, and never longer. */
import { expect, test } from 'vitest';
import type { Clock } from '../../lib/clock.ts';
import type { TokenId } from '../../model/ids.ts';
import type { Principal } from '../../model/token.ts';
import { TokenCache } from './tokenCache.ts';

const ada: Principal = { token: 't1' as TokenId, tenant: 'main', user: 'ada', scopes: [] };

function setUp(tokenCacheEntries = 100) {
  let nowMs = 1_000_000;
  const asked: string[] = [];
  const known = new Map([['good', ada]]);
  const clock: Clock = {
    now: () => nowMs,
    bootMs: () => nowMs,
    setTimer: () => ({ cancel() {} }),
    soon: (run) => run(),
  };
  const cache = new TokenCache({
    authenticate: async (secret) => {
      asked.push(secret);
      await Promise.resolve();
      if (secret === 'broken') throw new Error('no controller');
      return known.get(secret);
    },
    clock,
    tokenCacheMs: 5000,
    unknownTokenCacheMs: 1000,
    tokenCacheEntries,
  });
  return { cache, asked, known, advance: (ms: number) => void (nowMs += ms) };
}

test('a token is asked about once in five seconds', async () => {
  const { cache, asked, advance } = setUp();
  expect(cache.peek('good')).toBeUndefined();
  expect(await cache.lookup('good')).toBe(ada);
  advance(4999);
  expect(cache.peek('good')).toBe(ada);
  expect(await cache.lookup('good')).toBe(ada);
  advance(1);
  expect(cache.peek('good')).toBeUndefined();
  expect(await cache.lookup('good')).toBe(ada);
  expect(asked).toEqual(['good', 'good']);
});

test('a revoked token stops within five seconds, at once where it was revoked', async () => {
  const { cache, known, advance } = setUp();
  await cache.lookup('good');
  known.delete('good');
  advance(5000);
  expect(await cache.lookup('good')).toBeUndefined();

  known.set('good', ada);
  advance(1000);
  expect(await cache.lookup('good')).toBe(ada);
  known.delete('good');
  cache.forget('t1');
  expect(await cache.lookup('good')).toBeUndefined();
});

test('an unknown token is believed unknown for a second only', async () => {
  const { cache, asked, known, advance } = setUp();
  expect(await cache.lookup('new')).toBeUndefined();
  expect(await cache.lookup('new')).toBeUndefined();
  expect(asked).toEqual(['new']);
  known.set('new', ada);
  advance(1000);
  expect(await cache.lookup('new')).toBe(ada);
  expect(cache.size).toBe(1);
});

test('callers at the same time share one question', async () => {
  const { cache, asked } = setUp();
  const answers = await Promise.all(Array.from({ length: 50 }, () => cache.lookup('good')));
  expect(answers.every((answer) => answer === ada)).toBe(true);
  expect(asked).toEqual(['good']);
});

test('a failed question is nobody’s answer: the next caller asks again', async () => {
  const { cache, asked } = setUp();
  await expect(cache.lookup('broken')).rejects.toThrow('no controller');
  await expect(cache.lookup('broken')).rejects.toThrow('no controller');
  expect(asked).toEqual(['broken', 'broken']);
});

test('guesses neither grow the cache without end nor push out real tokens', async () => {
  const { cache, asked } = setUp(10);
  await cache.lookup('good');
  for (let i = 0; i < 1000; i++) await cache.lookup(`guess-${i}`);
  expect(cache.size).toBe(11);
  expect(cache.peek('good')).toBe(ada);
  expect(asked.filter((secret) => secret === 'good')).toHaveLength(1);
});

test('a clock that steps back makes nothing live longer', async () => {
  const { cache, advance } = setUp();
  await cache.lookup('good');
  advance(-3_600_000);
  expect(cache.peek('good')).toBeUndefined();
});
