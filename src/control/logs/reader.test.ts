/** Pages, selections and last lines, across open and compressed segments. */
import { describe, expect, it } from 'vitest';
import type { LogRecordView } from '../../protocol/jobs.ts';
import { chunk, filesOf, readAll, textOf, TINY, until, withStore } from './testLogs.ts';

describe('reading logs', () => {
  it('compresses full segments and reads across them and the open one', async () => {
    await withStore(TINY, async (store, dir) => {
      let text = '';
      for (let n = 0; n < 100; n++) {
        const line = `line ${n}\n`;
        await store.append([chunk(line, text.length, { index: 0, atMs: n })]);
        text += line;
      }
      await until(() => filesOf(dir).filter((name) => name.endsWith('.log')).length <= 1);
      expect(filesOf(dir).filter((name) => name.endsWith('.zst')).length).toBeGreaterThan(3);
      expect(textOf(await readAll(store))).toBe(text);
      expect(textOf(await readAll(store, 'j1', { after: 90 }))).toBe(
        text.slice(text.indexOf('line 90')),
      );
      expect(textOf(await readAll(store, 'j1', { sinceMs: 95 }))).toBe(
        text.slice(text.indexOf('line 95')),
      );
      expect(textOf(await readAll(store, 'j1', { tailLines: 60 }))).toBe(
        text.slice(text.indexOf('line 40')),
      );
    });
  });

  it('selects by task, time and last lines, exactly and together', async () => {
    await withStore(TINY, async (store) => {
      const ends = [0, 0, 0];
      for (let n = 0; n < 60; n++) {
        const index = n % 3;
        const line = `${n}\n`;
        await store.append([chunk(line, ends[index] ?? 0, { index, atMs: 1000 + n })]);
        ends[index] = (ends[index] ?? 0) + line.length;
      }
      const lines = async (query: object): Promise<string[]> =>
        textOf(await readAll(store, 'j1', query))
          .trim()
          .split('\n');
      const numbers = Array.from({ length: 60 }, (_, n) => n);
      const ofTask = numbers.filter((n) => n % 3 === 1);
      expect(await lines({})).toEqual(numbers.map(String));
      expect(await lines({ task: 1 })).toEqual(ofTask.map(String));
      expect(await lines({ task: 1, tailLines: 7 })).toEqual(ofTask.slice(-7).map(String));
      expect(await lines({ tailLines: 7 })).toEqual(numbers.slice(-7).map(String));
      expect(await lines({ sinceMs: 1050 })).toEqual(numbers.slice(50).map(String));
      expect(await lines({ sinceMs: 1050, task: 1, tailLines: 2 })).toEqual(['55', '58']);
      expect(await lines({ task: 7 })).toEqual(['']);
      const none = await store.read('j1', { after: 0, tailLines: 0, limitBytes: 1000 });
      expect(none).toEqual({ records: [], next: 60 });
    });
  });

  it('cuts the first record of a tail inside, and says at which offset', async () => {
    await withStore({}, async (store) => {
      await store.append([chunk('a\nbb\nccc\n', 0)]);
      const { records } = await store.read('j1', { after: 0, tailLines: 1, limitBytes: 1 });
      expect(records).toEqual([expect.objectContaining({ seq: 1, offset: 5, text: 'ccc\n' })]);
    });
  });

  it('keeps pages near their limit, with at least one record', async () => {
    await withStore({ recordBytes: 10 }, async (store) => {
      await store.append([chunk('123456789\n'.repeat(20), 0)]);
      const page = await store.read('j1', { after: 0, limitBytes: 1 });
      expect(page).toMatchObject({ next: 1, records: [{ seq: 1 }] });
      const larger = await store.read('j1', { after: 0, limitBytes: 500 });
      expect(larger.records.length).toBeGreaterThan(2);
      expect(larger.records.length).toBeLessThan(6);
    });
  });

  it('counts a line beyond the limit as several', async () => {
    await withStore(TINY, async (store) => {
      await store.append([chunk(`first\n${'x'.repeat(100)}\nlast\n`, 0)]);
      const text = textOf(await readAll(store, 'j1', { tailLines: 2 }));
      expect(text.endsWith('\nlast\n')).toBe(true);
      expect(text.length).toBeLessThanOrEqual(TINY.lineBytes + TINY.recordBytes + 6);
    });
  });

  it('follows while segments fill, close and are compressed', async () => {
    await withStore(TINY, async (store) => {
      const followed: LogRecordView[] = [];
      const follow = async (): Promise<void> => {
        for (let after = 0; followed.length < 300;) {
          await store.wait('j1', after, 10_000);
          const page = await store.read('j1', { after, limitBytes: 500 });
          followed.push(...page.records);
          after = page.next;
        }
      };
      const following = follow();
      let end = 0;
      for (let n = 0; n < 300; n++) {
        const line = `line ${n}\n`;
        await store.append([chunk(line, end)]);
        end += line.length;
      }
      await following;
      expect(followed.map(({ seq }) => seq)).toEqual(followed.map((_, n) => n + 1));
      expect(textOf(followed).length).toBe(end);
    });
  });

  it('finds the one record it looks for behind many that only share its blocks', async () => {
    await withStore(TINY, async (store) => {
      for (let n = 0; n < 40; n++) {
        await store.append([
          chunk('a\n', n * 2, { index: 0, atMs: 2000 }),
          chunk('b\n', n * 2, { index: 1, atMs: n < 39 ? 1000 : 2000 }),
        ]);
      }
      const query = { after: 0, task: 1, sinceMs: 1500, limitBytes: 1000 };
      expect((await store.read('j1', query)).records).toMatchObject([{ offset: 78, text: 'b\n' }]);
    });
  });

  it('reads on where segments are compressed under it, one after the other', async () => {
    await withStore(TINY, async (store, dir) => {
      for (let n = 0; n < 200; n++) await store.append([chunk(`${n % 10}\n`, n * 2)]);
      const texts: string[] = [];
      const open = (): number => filesOf(dir).filter((name) => name.endsWith('.log')).length;
      do {
        const forward = await readAll(store, 'j1', { limitBytes: 1_000_000 });
        const tail = await readAll(store, 'j1', { tailLines: 200, limitBytes: 1 });
        texts.push(textOf(forward), textOf(tail));
      } while (open() > 1);
      expect(new Set(texts.map((text) => text.length))).toEqual(new Set([400]));
    });
  });

  it('answers a tail whole, up to its limit in bytes', async () => {
    await withStore({ ...TINY, tailBytes: 2000 }, async (store) => {
      await store.append([chunk('123456789\n'.repeat(100), 0)]);
      const records = await readAll(store, 'j1', { tailLines: 100, limitBytes: 1 });
      expect(records.length).toBeGreaterThan(10);
      expect(records.length).toBeLessThan(20);
      expect(records.at(-1)?.seq).toBe(100);
    });
  });
});
