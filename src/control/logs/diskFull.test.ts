/** A log store on a disk that is really full. */
import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chunk, filesOf, freshFolder, openStore, readAll, textOf, until } from './testLogs.ts';

/** A real full disk; without the right to mount one this fails and says so. */
async function onSmallDisk(use: (dir: string) => Promise<void>): Promise<void> {
  const { dir, remove } = freshFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'drover-test', dir]);
  } catch (cause) {
    remove();
    throw new Error('this test mounts a small tmpfs: run it as root', { cause });
  }
  try {
    await use(dir);
  } finally {
    execFileSync('umount', [dir]);
    remove();
  }
}

function fillDisk(dir: string, leaveBytes: number): () => void {
  const path = join(dir, 'filler');
  const { bavail, bsize } = statfsSync(dir);
  writeFileSync(path, Buffer.alloc(bavail * bsize - leaveBytes));
  return () => rmSync(path);
}

describe('a log store whose disk is full', () => {
  it('acknowledges nothing, shows nothing half, goes on when there is space again', async () => {
    await onSmallDisk(async (dir) => {
      // Small records: of a write that failed halfway the first ones look whole.
      const limits = { recordBytes: 1000 };
      let store = openStore(dir, limits);
      const line = `${'x'.repeat(99)}\n`;
      await store.append([chunk(line, 0)]);
      const free = fillDisk(dir, 8192);
      const large = chunk(line.repeat(500), line.length);
      const full = { code: 'UNAVAILABLE', hint: expect.stringContaining('Free some space') };
      await expect(store.append([large])).rejects.toMatchObject(full);
      await expect(store.append([large])).rejects.toMatchObject(full);
      await expect(store.append([chunk(line.repeat(500), 0, { job: 'j2' })])).rejects.toMatchObject(
        full,
      );
      expect(textOf(await readAll(store))).toBe(line);
      expect(await readAll(store, 'j2')).toEqual([]);
      expect(await store.offsets('j1')).toEqual({ u0: { stdout: 100, stderr: 0 } });

      await store.close();
      store = openStore(dir, limits);
      expect(textOf(await readAll(store))).toBe(line);
      await expect(store.append([large])).rejects.toMatchObject(full);
      free();
      expect(await store.append([large])).toMatchObject([{ offset: 50_100 }]);
      await store.append([chunk('hello\n', 0, { job: 'j2' })]);
      expect(textOf(await readAll(store))).toBe(line.repeat(501));
      expect(textOf(await readAll(store, 'j2'))).toBe('hello\n');
      await store.close();
    });
  });

  it('stores what fits of a request over several jobs', async () => {
    await onSmallDisk(async (dir) => {
      const store = openStore(dir);
      await store.append([chunk('a\n', 0), chunk('b\n', 0, { job: 'j2' })]);
      const free = fillDisk(dir, 4096);
      const acks = await store.append([
        chunk('c\n', 2),
        chunk(Buffer.alloc(100_000, 'x'), 2, { job: 'j2' }),
        chunk('!\n', 100_002, { job: 'j2' }),
      ]);
      expect(acks.map(({ offset }) => offset)).toEqual([4, 2, 2]);
      free();
      await store.close();
    });
  });

  it('leaves a segment as it is when its compressed form has no room', async () => {
    await onSmallDisk(async (dir) => {
      const store = openStore(dir, { segmentBytes: 4096, idleMs: 20, sweepMs: 10 });
      const bytes = Buffer.from(Array.from({ length: 300_000 }, () => Math.random() * 256));
      const free = fillDisk(dir, 320_000);
      await store.append([chunk(bytes, 0)]);
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect((await readAll(store, 'j1', { limitBytes: 1e6 })).length).toBeGreaterThan(1);
      free();
      await until(() => filesOf(dir).every((name) => name.endsWith('.zst')));
      expect(await store.offsets('j1')).toEqual({ u0: { stdout: 300_000, stderr: 0 } });
      await store.close();
    });
  });
});
