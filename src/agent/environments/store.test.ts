/** What was built is built once, used while somebody does, and never half there. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { systemRandom } from '../../lib/random.ts';
import { EnvironmentStore, keyOf } from './store.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-environments-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (keep = 10): EnvironmentStore =>
  new EnvironmentStore({
    folder: join(folder, 'built'),
    attempts: join(folder, 'attempts'),
    keep,
    maxBytes: 1e9,
    clock: systemClock,
    random: systemRandom,
  });
const attempt = (uid: string) => ({ uid, say: (): void => undefined });
const fill = async (own: string): Promise<void> => writeFileSync(join(own, 'file'), 'x');
const there = (): string[] => readdirSync(join(folder, 'built')).map((name) => name.split('.')[0]!);

test('two at once build once; the next agent finds it', async () => {
  let builds = 0;
  const build = async (own: string): Promise<void> => {
    builds++;
    await fill(own);
  };
  const store = open();
  const [one, other] = await Promise.all(['a', 'b'].map((u) => store.use('k', attempt(u), build)));
  expect(one).toBe(other);
  expect(await open().use('k', attempt('c'), build)).toBe(one);
  expect(builds).toBe(1);
});

test('who waits for a build that fails builds itself; nothing half built is left', async () => {
  const store = open();
  let builds = 0;
  const build = async (own: string): Promise<void> => {
    await fill(own);
    if (builds++ === 0) throw new Error('no network');
  };
  const both = await Promise.allSettled(['a', 'b'].map((u) => store.use('k', attempt(u), build)));
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  expect(there()).toEqual(['k']);
});

test('what an agent that died was building is gone with the next', async () => {
  mkdirSync(join(folder, 'built', 'k.1234', 'users'), { recursive: true });
  const used = await open().use('k', attempt('a'), fill);
  expect(used).not.toContain('1234');
  expect(there()).toEqual(['k']);
});

test('the least recently used goes, but not what an attempt uses', async () => {
  mkdirSync(join(folder, 'attempts', 'busy'), { recursive: true });
  const store = open(2);
  const first = await store.use('first', attempt('busy'), fill);
  for (const key of ['second', 'third']) await store.use(key, attempt('over'), fill);
  expect(existsSync(join(first, 'file'))).toBe(true);
  expect(there().toSorted()).toEqual(['first', 'third']);
});

test('a key tells apart what is cut differently', () => {
  expect(keyOf(['ab', 'c'])).not.toBe(keyOf(['a', 'bc']));
});
