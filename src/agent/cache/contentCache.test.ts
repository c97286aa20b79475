/** The cache: whole files or none, the least recently used go first, what is in use never does. */
import { linkSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { blobHashOf, type BlobHash } from '../../model/blob.ts';
import { ContentCache, type Fetch } from './contentCache.ts';
import { checkCacheFolder } from './folder.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'drover-cache-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const open = (maxBytes: number): ContentCache =>
  new ContentCache({ folder: path.join(root, 'cache'), maxBytes, clock: systemClock });
const bytesOf = (name: string): Buffer => Buffer.from(name.repeat(10));
const hashOf = (name: string): BlobHash => blobHashOf(bytesOf(name));
let fetched: string[] = [];
const fetchOf =
  (name: string): Fetch =>
  async (at, makeRoom) => {
    makeRoom(10);
    fetched.push(name);
    writeFileSync(at, bytesOf(name));
  };
const use = (cache: ContentCache, name: string): Promise<string> =>
  cache.use(hashOf(name), fetchOf(name), async (at) => readFileSync(at, 'utf8'));
beforeEach(() => {
  fetched = [];
});

test('fetched once, also by many at a time and by the next agent', async () => {
  const cache = open(1000);
  const all = await Promise.all([use(cache, 'a'), use(cache, 'a'), use(cache, 'a')]);
  expect(all).toEqual(Array(3).fill('a'.repeat(10)));
  await use(open(1000), 'a');
  expect(fetched).toEqual(['a']);
});

test('the least recently used goes; what an attempt holds stays', async () => {
  const cache = open(30);
  for (const name of ['a', 'b', 'c']) await use(cache, name);
  await use(cache, 'a');
  await use(cache, 'd');
  expect(await Promise.all(['a', 'b', 'c', 'd'].map((name) => cache.has(hashOf(name))))).toEqual([
    true,
    false,
    true,
    true,
  ]);
  const held = path.join(root, 'held');
  for (const name of ['a', 'c', 'd']) {
    const keep = async (at: string): Promise<void> => linkSync(at, held + name);
    await cache.use(hashOf(name), fetchOf(name), keep);
  }
  for (const one of [cache, open(30)]) {
    await expect(use(one, 'e')).rejects.toMatchObject({
      name: 'Unprepared',
      hostFault: true,
      message: expect.stringContaining('10 bytes more are needed, and 30 of its 30 are in use'),
    });
  }
  rmSync(`${held}c`);
  await use(cache, 'e');
  expect(await cache.has(hashOf('c'))).toBe(false);
});

test('what was written to is fetched again; what failed leaves nothing', async () => {
  const cache = open(1000);
  await cache.use(hashOf('a'), fetchOf('a'), async (at) => {
    rmSync(at);
    writeFileSync(at, 'x'.repeat(10));
  });
  expect(await use(cache, 'a')).toBe('a'.repeat(10));
  const torn: Fetch = async (at) => {
    writeFileSync(at, 'half');
    throw new Error('the connection broke');
  };
  const broken = cache.use(hashOf('b'), torn, async () => 'used');
  await expect(broken).rejects.toThrow('the connection broke');
  expect(readdirSync(path.join(root, 'cache/parts'))).toEqual([]);
  expect(await cache.has(hashOf('b'))).toBe(false);
});

test('a folder that attempts cannot link from is refused at the start', () => {
  expect(() => checkCacheFolder(path.join(root, 'cache'), root)).not.toThrow();
  expect(readdirSync(root)).toEqual(['cache']);
  expect(() => checkCacheFolder('/dev/shm/drover-cache-test', root)).toThrow(/on another disk/);
  rmSync('/dev/shm/drover-cache-test', { recursive: true, force: true });
});
