/** What jobs cost the log store that are many or idle. */
import { describe, expect, it } from 'vitest';
import { chunk, filesOf, openFilesIn, readAll, textOf, until, withStore } from './testLogs.ts';

describe('what many jobs cost the log store', () => {
  it('lets idle jobs go: no open file, compressed, and all there when asked again', async () => {
    const limits = { idleMs: 20, sweepMs: 10, idleSealBytes: 64 };
    await withStore(limits, async (store, dir) => {
      const jobs = Array.from({ length: 30 }, (_, n) => `job${n}`);
      const line = 'a line that is long enough to be worth compressing\n'.repeat(4);
      await store.append(jobs.map((job) => chunk(line, 0, { job })));
      await until(() => filesOf(dir).every((name) => name.endsWith('.zst')));
      await until(() => openFilesIn(dir) === 0);
      for (const job of jobs) expect(textOf(await readAll(store, job))).toBe(line);
      await store.append(jobs.map((job) => chunk('end\n', line.length, { job })));
      for (const job of jobs) expect(textOf(await readAll(store, job))).toBe(`${line}end\n`);
    });
  });

  it('keeps few files open however many jobs write', async () => {
    await withStore({ openFiles: 5 }, async (store, dir) => {
      const jobs = Array.from({ length: 60 }, (_, n) => `job${n}`);
      for (let n = 0; n < 3; n++) {
        await store.append(jobs.map((job) => chunk('x\n', n * 2, { job })));
        await until(() => openFilesIn(dir) <= 5);
      }
      for (const job of jobs) expect(textOf(await readAll(store, job))).toBe('x\n'.repeat(3));
    });
  });

  it('holds no more jobs in memory than it may', async () => {
    await withStore({ loadedJobs: 5 }, async (store, dir) => {
      const jobs = Array.from({ length: 40 }, (_, n) => `job${n}`);
      for (const job of jobs) await store.append([chunk('x\n', 0, { job })]);
      await until(() => openFilesIn(dir) <= 6);
      for (const job of jobs) expect(textOf(await readAll(store, job))).toBe('x\n');
    });
  });
});
