/** What a log store has after torn writes, damage, an unfinished sealing and kill -9. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import {
  bytesOf,
  chunk,
  filesOf,
  freshFolder,
  openStore,
  readAll,
  textOf,
  until,
  withStore,
} from './testLogs.ts';

/** A folder with the given bytes as its only segment. */
async function reopened(
  name: string,
  bytes: Buffer,
  use: (store: ReturnType<typeof openStore>) => Promise<void>,
): Promise<void> {
  const { dir, remove } = freshFolder();
  mkdirSync(dirname(join(dir, name)), { recursive: true });
  writeFileSync(join(dir, name), bytes);
  const store = openStore(dir);
  try {
    await use(store);
  } finally {
    await store.close();
    remove();
  }
}

interface Written {
  name: string;
  /** The file with two records, with three and with four. */
  before: Buffer;
  whole: Buffer;
  longer: Buffer;
}

async function writtenSegment(): Promise<Written> {
  const { dir, remove } = freshFolder();
  const store = openStore(dir);
  try {
    await store.append([chunk('one\n', 0), chunk('err\n', 0, { stream: 'stderr' })]);
    const name = filesOf(dir)[0] ?? '';
    const before = readFileSync(join(dir, name));
    await store.append([chunk('two\n', 4)]);
    const whole = readFileSync(join(dir, name));
    await store.append([chunk('three\n', 8)]);
    return { name, before, whole, longer: readFileSync(join(dir, name)) };
  } finally {
    await store.close();
    remove();
  }
}

describe('a log store after a crash', () => {
  it('goes on from the last whole record, wherever the last write was torn', async () => {
    const { name, before, whole } = await writtenSegment();
    for (let length = before.length; length < whole.length; length++) {
      await reopened(name, whole.subarray(0, length), async (store) => {
        expect(textOf(await readAll(store))).toBe('one\nerr\n');
        expect(await store.offsets('j1')).toEqual({ u0: { stdout: 4, stderr: 4 } });
        expect(await store.append([chunk('two\nthree\n', 4)])).toMatchObject([{ offset: 14 }]);
        const records = await readAll(store);
        expect(textOf(records)).toBe('one\nerr\ntwo\nthree\n');
        expect(records.map(({ seq }) => seq)).toEqual([1, 2, 3]);
      });
    }
  });

  it('takes no damaged or zeroed tail for output', async () => {
    const { name, before, whole } = await writtenSegment();
    const tails = Array.from({ length: whole.length - before.length }, (_, at) => {
      const bytes = Buffer.from(whole);
      bytes[before.length + at] = (bytes[before.length + at] ?? 0) ^ 0x10;
      return bytes;
    });
    tails.push(Buffer.concat([before, Buffer.alloc(4096)]));
    tails.push(Buffer.concat([before, Buffer.alloc(100, 0xff)]));
    for (const bytes of tails) {
      await reopened(name, bytes, async (store) => {
        expect(textOf(await readAll(store))).toBe('one\nerr\n');
        await store.append([chunk('two\n', 4)]);
        expect(textOf(await readAll(store))).toBe('one\nerr\ntwo\n');
      });
    }
  });

  it('leaves nothing behind a torn record that could come back later', async () => {
    const { name, before, whole, longer } = await writtenSegment();
    const torn = Buffer.from(longer);
    torn[before.length + 10] = (torn[before.length + 10] ?? 0) ^ 0x10;
    const { dir, remove } = freshFolder();
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), torn);
    for (const text of ['one\nerr\ntwo\n', 'one\nerr\ntwo\n']) {
      const store = openStore(dir);
      // As long as what was torn, so that the record behind it would fit again.
      await store.append([chunk('two\n', 4)]);
      expect(textOf(await readAll(store))).toBe(text);
      await store.close();
    }
    expect(readFileSync(join(dir, name)).length).toBe(whole.length);
    remove();
  });

  it('starts over in a segment that was created and never written', async () => {
    const { name, whole } = await writtenSegment();
    for (let length = 0; length <= 8; length++) {
      await reopened(name, whole.subarray(0, length), async (store) => {
        expect(await readAll(store)).toEqual([]);
        await store.append([chunk('one\n', 0)]);
        expect(textOf(await readAll(store))).toBe('one\n');
      });
    }
  });

  it('finishes a sealing that was cut short before or after its result was published', async () => {
    const limits = { segmentBytes: 100, blockBytes: 64 };
    const { dir, remove } = freshFolder();
    let store = openStore(dir, limits);
    try {
      const line = `${'x'.repeat(150)}\n`;
      await store.append([chunk(line, 0)]);
      const open = filesOf(dir)[0] ?? '';
      const kept = join(dir, 'kept');
      copyFileSync(join(dir, open), kept);
      await until(() => filesOf(dir).every((name) => name.endsWith('.zst')));
      await store.close();
      copyFileSync(kept, join(dir, open));
      writeFileSync(join(dir, dirname(open), '000002.zst.tmp'), 'half of a segment');

      store = openStore(dir, limits);
      expect(textOf(await readAll(store))).toBe(line);
      expect(filesOf(dir)).toEqual([open.replace('.log', '.zst')]);
      await store.append([chunk('more\n', line.length)]);
      expect(textOf(await readAll(store))).toBe(`${line}more\n`);
    } finally {
      await store.close();
      remove();
    }
  });

  it('says that a sealed segment is damaged rather than that it is empty', async () => {
    await withStore({ segmentBytes: 100 }, async (store, dir) => {
      await store.append([chunk('x'.repeat(5000), 0)]);
      await until(() => {
        const names = filesOf(dir);
        return names.length > 0 && names.every((name) => name.endsWith('.zst'));
      });
      const path = join(dir, filesOf(dir)[0] ?? '');
      const bytes = readFileSync(path);
      bytes[20] = (bytes[20] ?? 0) ^ 0xff;
      writeFileSync(path, bytes);
      await expect(readAll(store)).rejects.toThrow('is damaged');
    });
  });

  it('has all it acknowledged after kill -9, and goes on without a gap or duplicate', async () => {
    const { dir, remove } = freshFolder();
    try {
      let acknowledged = 0;
      for (let round = 0; round < 4; round++) {
        acknowledged = await appendUntilKilled(dir, acknowledged);
        const store = openStore(dir, KILLED_LIMITS);
        const records = await readAll(store, 'j1', { limitBytes: 1 << 20 });
        const text = Buffer.concat(records.map(bytesOf));
        expect(text.length).toBeGreaterThanOrEqual(acknowledged);
        expect(text.equals(expectedBytes(text.length))).toBe(true);
        expect(records.map(({ seq }) => seq)).toEqual(records.map((_, n) => n + 1));
        await store.close();
      }
      expect(acknowledged).toBeGreaterThan(0);
    } finally {
      remove();
    }
  }, 30_000);
});

const KILLED_LIMITS = { segmentBytes: 20_000, blockBytes: 2_000 };

function expectedBytes(length: number): Buffer {
  let text = '';
  for (let n = 0; text.length < length; n++) text += `line ${n}\n`;
  return Buffer.from(text.slice(0, length));
}

/** Another process appends from where we know it to be, tells its acknowledgements, is killed. */
async function appendUntilKilled(dir: string, from: number): Promise<number> {
  const module = new URL('./testLogs.ts', import.meta.url).href;
  const script = `
    import { openStore, chunk } from ${JSON.stringify(module)};
    const store = openStore(${JSON.stringify(dir)}, ${JSON.stringify(KILLED_LIMITS)});
    let text = '';
    for (let n = 0; n < 200000; n++) text += 'line ' + n + '\\n';
    for (let at = ${from}; ; ) {
      const [ack] = await store.append([chunk(text.slice(at, at + 700), at)]);
      at = ack.offset;
      process.stdout.write(at + '\\n');
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let last = from;
  let lines = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line);
    if (++lines === 100) child.kill('SIGKILL');
  }
  await exited;
  expect(child.signalCode).toBe('SIGKILL');
  return last;
}
