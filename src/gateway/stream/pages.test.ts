/** A stream that breaks goes on where it was; one that is wrong, or over, does not. */
import { expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import { silentLog } from '../../lib/log.ts';
import type { LogPage, LogQuery } from '../../protocol/coordinator.ts';
import { streamedPages } from './pages.ts';

/** Time passes as it is waited for. */
function quickClock() {
  let nowMs = 0;
  return {
    ...systemClock,
    bootMs: () => nowMs,
    setTimer(delayMs: number, run: () => void) {
      nowMs += delayMs;
      setImmediate(run);
      return { cancel: () => {} };
    },
  };
}

const away = (): DroverError => new DroverError('UNAVAILABLE', 'away');
const gone = (): Generator<LogPage> => {
  throw away();
};
const record = (seq: number) => ({
  ...{ seq, task: 't', index: 0, attempt: 1, stream: 'stdout' as const, offset: 0, atMs: 0 },
  text: `${seq}`,
});
const page = (...seqs: number[]): LogPage => ({
  records: seqs.map(record),
  next: seqs.at(-1) ?? 0,
  complete: false,
});

interface Scene {
  seqs: number[];
  asked: LogQuery[];
  complete: boolean;
}

/** Each call of the coordinator plays the next of the parts, and the last for ever. */
async function play(
  parts: (() => Generator<LogPage>)[],
  { query = { after: 0, waitMs: 0 }, begun = true }: { query?: LogQuery; begun?: boolean } = {},
): Promise<Scene> {
  const asked: LogQuery[] = [];
  const scene: Scene = { seqs: [], asked, complete: false };
  const pages = streamedPages({
    async *open(from) {
      const part = parts[Math.min(asked.length, parts.length - 1)];
      asked.push(from);
      yield* part?.() ?? [];
    },
    query,
    begun: () => begun,
    signal: new AbortController().signal,
    clock: quickClock(),
    log: silentLog,
  });
  for await (const { records, complete } of pages) {
    scene.seqs.push(...records.map(({ seq }) => seq));
    scene.complete = complete;
  }
  return scene;
}

test('it is opened again behind the last page, and what comes twice is shown once', async () => {
  const scene = await play(
    [
      function* () {
        yield page(1, 2);
        throw away();
      },
      gone,
      function* () {
        yield page(2, 3);
        yield { ...page(4), complete: true };
      },
    ],
    { query: { after: 0, waitMs: 0, tailLines: 9 } },
  );
  expect(scene.seqs).toEqual([1, 2, 3, 4]);
  expect(scene.complete).toBe(true);
  expect(scene.asked.map(({ after, tailLines }) => [after, tailLines])).toEqual([
    ...[[0, 9] as const, [2, undefined] as const, [2, undefined] as const],
  ]);
});

test('a coordinator that is away for too long is given up', async () => {
  const dead = [
    function* () {
      yield page(1);
      throw away();
    },
    gone,
  ];
  await expect(play(dead)).rejects.toThrow('away');
});

test('before anything was answered, and where something is wrong, it fails at once', async () => {
  await expect(play([gone], { begun: false })).rejects.toThrow('away');
  const wrong = function* (): Generator<LogPage> {
    yield page(1);
    throw new DroverError('NOT_FOUND', 'gone');
  };
  await expect(play([wrong])).rejects.toThrow('gone');
});

test('one that ends without saying so is over once it ends again with nothing new', async () => {
  const scene = await play([
    function* () {
      yield page(1, 2);
    },
    function* () {
      yield page(3);
    },
    function* () {},
  ]);
  expect(scene.seqs).toEqual([1, 2, 3]);
  expect(scene.complete).toBe(true);
  expect(scene.asked).toHaveLength(4);
});
