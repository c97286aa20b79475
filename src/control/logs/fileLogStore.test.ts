/** What a log store keeps, numbers, drops and refuses, and whom it wakes. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OwnedChunk } from '../logs.ts';
import { limitNotice } from './jobState.ts';
import {
  bytesOf,
  chunk,
  freshFolder,
  openStore,
  readAll,
  textOf,
  TINY,
  withStore,
} from './testLogs.ts';

describe('the log store', () => {
  it('keeps what it acknowledged and numbers it from 1 without a gap', async () => {
    await withStore({}, async (store) => {
      expect(await store.append([chunk('a\nb\n', 0), chunk('c\n', 4)])).toEqual([
        { uid: 'u0', stream: 'stdout', offset: 4 },
        { uid: 'u0', stream: 'stdout', offset: 6 },
      ]);
      await store.append([chunk('oh\n', 0, { stream: 'stderr', atMs: 2000 })]);
      expect(await readAll(store)).toEqual([
        expect.objectContaining({ seq: 1, offset: 0, text: 'a\nb\n', atMs: 1000 }),
        expect.objectContaining({ seq: 2, offset: 4, text: 'c\n' }),
        {
          seq: 3,
          task: 'j1.0',
          index: 0,
          attempt: 1,
          stream: 'stderr',
          offset: 0,
          atMs: 2000,
          text: 'oh\n',
        },
      ]);
      expect(await store.offsets('j1')).toEqual({ u0: { stdout: 6, stderr: 3 } });
    });
  });

  it('drops what it had, takes the new part of an overlap, asks for what is missing', async () => {
    await withStore({}, async (store) => {
      const offset = async (sent: OwnedChunk): Promise<number | undefined> =>
        (await store.append([sent]))[0]?.offset;
      expect(await offset(chunk('hello\n', 0))).toBe(6);
      expect(await offset(chunk('hello\n', 0))).toBe(6);
      expect(await offset(chunk('late\n', 9))).toBe(6);
      expect(await offset(chunk('late\n', 7))).toBe(6);
      expect(await offset(chunk('lo\nyou\n', 3))).toBe(10);
      expect(await offset(chunk('', 10))).toBe(10);
      expect(await offset(chunk('never seen', 7, { uid: 'other' }))).toBe(0);
      expect(textOf(await readAll(store))).toBe('hello\nyou\n');
      expect(Object.keys(await store.offsets('j1'))).toEqual(['u0']);
    });
  });

  it('has every byte once, in order, however chunks come, over restarts and sealing', async () => {
    const delivery = fc.record({
      stream: fc.nat(3),
      from: fc.nat(1200),
      length: fc.integer({ min: 0, max: 300 }),
      apart: fc.boolean(),
      restart: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    });
    const contents = fc.array(fc.uint8Array({ maxLength: 1000 }), { minLength: 4, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(
        contents,
        fc.array(delivery, { maxLength: 40 }),
        async (data, deliveries) => {
          const { dir, remove } = freshFolder();
          let store = openStore(dir, TINY);
          const streamOf = (n: number, offset: number, end: number): OwnedChunk =>
            chunk(data[n]?.subarray(offset, end) ?? Buffer.alloc(0), offset, {
              index: n >> 1,
              stream: n % 2 === 0 ? 'stdout' : 'stderr',
            });
          try {
            const running: Promise<unknown>[] = [];
            for (const { stream, from, length, apart, restart } of deliveries) {
              running.push(store.append([streamOf(stream, from, from + length)]));
              if (apart) await Promise.all(running.splice(0));
              if (!restart) continue;
              await Promise.all(running.splice(0));
              await store.close();
              store = openStore(dir, TINY);
            }
            await store.append(data.map((bytes, n) => streamOf(n, 0, bytes.length)));
            const records = await readAll(store);
            expect(records.map(({ seq }) => seq)).toEqual(records.map((_, n) => n + 1));
            data.forEach((bytes, n) => {
              const own = records.filter(
                (r) => r.index === n >> 1 && r.stream === (n % 2 === 0 ? 'stdout' : 'stderr'),
              );
              expect(Buffer.concat(own.map(bytesOf))).toEqual(Buffer.from(bytes));
              let end = 0;
              for (const record of own) {
                expect(record.offset).toBe(end);
                end += bytesOf(record).length;
              }
            });
          } finally {
            await store.close();
            remove();
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('stores binary garbage byte for byte', async () => {
    await withStore({}, async (store) => {
      const bytes = Buffer.from(Array.from({ length: 5000 }, (_, n) => (n * 7919) % 256));
      await store.append([chunk(bytes, 0)]);
      expect(Buffer.concat((await readAll(store)).map(bytesOf))).toEqual(bytes);
    });
  });

  it('refuses what is no job id, so that no path leaves the folder', async () => {
    await withStore({}, async (store) => {
      for (const job of ['../x', 'a/b', '', '.', 'x'.repeat(200)]) {
        await expect(store.append([chunk('x', 0, { job })])).rejects.toThrow('not a job id');
      }
    });
  });

  it('keeps the head of too much output, says so once and acknowledges the rest', async () => {
    const limits = { jobBytes: 20, segmentBytes: 200 };
    const { dir, remove } = freshFolder();
    let store = openStore(dir, limits);
    try {
      let end = 0;
      for (let n = 0; n < 10; n++) {
        const acks = await store.append([chunk('1234567\n', end)]);
        end += 8;
        expect(acks[0]?.offset).toBe(end);
      }
      const kept = `1234567\n1234567\n${limitNotice(20)}`;
      expect(textOf(await readAll(store))).toBe(kept);
      await store.close();
      store = openStore(dir, limits);
      expect(await store.append([chunk('more\n', end)])).toMatchObject([{ offset: end + 5 }]);
      expect(textOf(await readAll(store))).toBe(kept);
      expect(await store.offsets('j1')).toEqual({ u0: { stdout: end + 5, stderr: 0 } });
      expect((await readAll(store)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    } finally {
      await store.close();
      remove();
    }
  });

  it('wakes a follower with the append, and tells it when nothing came', async () => {
    await withStore({}, async (store) => {
      expect(await store.wait('j1', 0, 5)).toBe(false);
      const woken = store.wait('j1', 0, 10_000);
      const other = store.wait('j2', 0, 20);
      await store.append([chunk('x\n', 0)]);
      expect(await woken).toBe(true);
      expect(await other).toBe(false);
      expect(await store.wait('j1', 0, 10_000)).toBe(true);
      const later = store.wait('j1', 1, 10_000);
      await store.append([chunk('x\ny\n', 0)]);
      expect(await later).toBe(true);
    });
  });

  it('ends waits when it closes, and refuses appends after', async () => {
    const { dir, remove } = freshFolder();
    const store = openStore(dir);
    const waiting = store.wait('j1', 0, 60_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    await store.close();
    expect(await waiting).toBe(false);
    await expect(store.append([chunk('x', 0)])).rejects.toThrow('closed');
    remove();
  });

  it('asks agents to come back when more is pending than it may hold', async () => {
    await withStore({ pendingBytes: 10 }, async (store) => {
      const first = store.append([chunk('123456\n', 0)]);
      await expect(store.append([chunk('123456\n', 7)])).rejects.toMatchObject({
        code: 'UNAVAILABLE',
      });
      await first;
      expect(await store.append([chunk('123456\n', 7)])).toMatchObject([{ offset: 14 }]);
    });
  });
});
