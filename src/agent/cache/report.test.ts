/** What the controller is told of the cache, and when. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { silentLog } from '../../lib/log.ts';
import { blobHashOf, type BlobHash } from '../../model/blob.ts';
import { AGENT_LIMITS } from '../../protocol/agent.ts';
import { ContentCache } from './contentCache.ts';
import { createCacheReport } from './report.ts';

const MIB = 1024 * 1024;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-report-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (maxBytes = 1000 * MIB): ContentCache =>
  new ContentCache({ folder, maxBytes, clock: systemClock });

async function fetch(cache: ContentCache, size: number, fill: string): Promise<BlobHash> {
  const bytes = Buffer.alloc(size, fill);
  const hash = blobHashOf(bytes);
  const write = async (at: string, makeRoom: (bytes: number) => void): Promise<void> => {
    makeRoom(size);
    writeFileSync(at, bytes);
  };
  await cache.use(hash, write, async () => undefined);
  return hash;
}

test('told once to each controller, and again when something has changed', async () => {
  const cache = open();
  const report = createCacheReport(cache, silentLog);
  expect(report.news('w1', 1)).toBeUndefined();
  const hash = await fetch(cache, MIB, 'a');
  const news = report.news('w1', 1);
  expect(news?.held).toEqual([{ hash, bytes: MIB }]);
  // Not answered: told again.
  expect(report.news('w1', 1)?.held).toHaveLength(1);
  news?.told(1);
  expect(report.news('w1', 1)).toBeUndefined();
  expect(report.news('w1', 2)?.held).toHaveLength(1);
  expect(report.news('w2', 1)?.held).toHaveLength(1);
  await fetch(cache, MIB - 1, 'b');
  expect(report.news('w1', 1)).toBeUndefined();
  const late = report.news('w1', 2);
  const larger = await fetch(cache, 2 * MIB, 'c');
  late?.told(2);
  expect(report.news('w1', 2)?.held[0]).toEqual({ hash: larger, bytes: 2 * MIB });
});

test('the largest, not more than the limit; what is evicted is told of no more', async () => {
  const cache = open(3 * MIB);
  const first = await fetch(cache, MIB, 'a');
  const second = await fetch(cache, MIB + 1, 'b');
  expect(cache.held(1)).toEqual([{ hash: second, bytes: MIB + 1 }]);
  const third = await fetch(cache, MIB, 'c');
  expect(cache.held(AGENT_LIMITS.held).map(({ hash }) => hash)).toEqual([second, third]);
  expect(await cache.has(first)).toBe(false);
});

test('folders are known while their manifest is there, also to the next agent', async () => {
  const cache = open(4 * MIB);
  const manifest = await fetch(cache, 100, 'm');
  const file = await fetch(cache, 2 * MIB, 'f');
  cache.noteTree(manifest, 2 * MIB);
  cache.noteTree(file, 10);
  const both = [
    { hash: file, bytes: 2 * MIB },
    { hash: manifest, bytes: 2 * MIB },
  ];
  expect(cache.held(9)).toEqual(both);
  const next = open(4 * MIB);
  const report = createCacheReport(next, silentLog);
  await expect.poll(() => report.news('w', 1)?.held).toEqual(both);
  await fetch(next, 2 * MIB, 'x');
  expect(next.held(9).map(({ hash }) => hash)).not.toContain(manifest);
  expect(open(4 * MIB).held(9)).toEqual([]);
  const last = open(4 * MIB);
  await last.look();
  expect(last.held(9).map(({ hash }) => hash)).not.toContain(manifest);
});
