/** Around a command: what is prepared is there, what it left is kept, and neither happens half. */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Unprepared, type Around, type Started } from './around.ts';
import { Bench, ended, eventually, inState, observe, shell } from './testing.ts';

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(() => bench.clean());

const nothing: Around = {
  needsPreparation: () => false,
  prepare: async () => undefined,
  watch: () => undefined,
  needsFinish: () => false,
  finish: async () => ({}),
};
const RESULT = { manifest: `sha256:${'1'.repeat(64)}`, bytes: 3 };

test('a command starts with what was prepared, and its facts are told', async () => {
  const around: Around = {
    ...nothing,
    needsPreparation: () => true,
    async prepare({ stage, home, task, facts, say }) {
      say('fetching');
      writeFileSync(join(stage, 'work', 'code.txt'), 'from the stage');
      task.env['PLACE'] = join(home, 'work/code.txt');
      task.command = ['sh', '-c', 'cat "$PLACE"; sleep 0.3'];
      facts['image'] = 'none';
    },
  };
  const runtime = bench.open({ around });
  const task = shell('exit 3');
  runtime.start(task);
  await inState(runtime, task.uid, 'RUNNING');
  expect(observe(runtime, task.uid)?.facts).toEqual({ image: 'none' });
  expect(runtime.execContext(task.uid)?.env['PLACE']).toContain(task.uid);
  expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'exited', exitCode: 0 });
  expect(bench.read(task.uid, 'stdout')).toBe('from the stage');
  expect(readdirSync(join(bench.dataDir, 'stages'))).toEqual([]);
});

test.each([
  [new Unprepared('no such image: x'), 'no such image: x', false],
  [new Unprepared('no podman here', { hostFault: true }), 'no podman here', true],
  [new Error('EIO'), 'the machine could not start it: EIO', true],
])('what cannot be prepared is told: %s', async (error, message, hostFault) => {
  const around: Around = {
    ...nothing,
    needsPreparation: () => true,
    async prepare(): Promise<void> {
      throw error;
    },
  };
  const runtime = bench.open({ around });
  const task = shell('true');
  runtime.start(task);
  const expected = { cause: 'never-started', message, hostFault };
  expect(await ended(runtime, task.uid)).toMatchObject(expected);
});

test('a stop ends a preparation; an agent that dies in one has started nothing', async () => {
  let aborted = 0;
  const around: Around = {
    ...nothing,
    needsPreparation: () => true,
    prepare: ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborted++;
          reject(new Error('aborted'));
        });
      }),
  };
  const runtime = bench.open({ around });
  const [stopped, left] = [shell('true'), shell('true')];
  runtime.start(stopped);
  runtime.start(left);
  runtime.stop({ uid: stopped.uid, cause: 'cancelled', graceMs: 1000 });
  expect(await ended(runtime, stopped.uid)).toMatchObject({ cause: 'cancelled' });
  await runtime.close();
  expect(aborted).toBe(2);
  const next = bench.open();
  expect(await ended(next, left.uid)).toMatchObject({ cause: 'never-started', hostFault: true });
});

test('what it left is kept before its end is told, by the next agent if need be', async () => {
  let calls = 0;
  const hanging: Around = {
    ...nothing,
    needsFinish: () => true,
    finish: ({ say }) => {
      calls++;
      say('storing its result');
      return new Promise(() => undefined);
    },
  };
  const first = bench.open({ around: hanging });
  const task = shell('echo out > left');
  first.start(task);
  await eventually(() => calls > 0, 'the finish');
  expect(observe(first, task.uid)).toMatchObject({ progress: 'storing its result' });
  expect(observe(first, task.uid)?.state).not.toBe('ENDED');
  await first.close();
  const around: Around = {
    ...hanging,
    finish: async ({ home, how }) => {
      if (++calls === 2) throw new Error('the network is down');
      expect(how).toMatchObject({ cause: 'exited', exitCode: 0 });
      expect(readFileSync(join(home, 'work/left'), 'utf8')).toBe('out\n');
      return { result: RESULT };
    },
  };
  const second = bench.open({ around });
  expect(await ended(second, task.uid)).toMatchObject({ exitCode: 0, result: RESULT });
  expect(calls).toBe(3);
});

test('nothing is kept for an attempt that nobody knows any more', async () => {
  let begun = false;
  const around: Around = {
    ...nothing,
    needsFinish: () => true,
    finish: ({ signal }) => {
      begun = true;
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')));
      });
    },
  };
  const runtime = bench.open({ around });
  const task = shell('true');
  runtime.start(task);
  await eventually(() => begun, 'the finish');
  runtime.stop({ uid: task.uid, cause: 'lost', graceMs: 0 });
  const end = await ended(runtime, task.uid);
  expect(end.result).toBeUndefined();
});

test('an attempt is watched from its start to its end, also by the next agent', async () => {
  const seen: string[] = [];
  let started: Started | undefined;
  const watching = (name: string): Around => ({
    ...nothing,
    watch(one) {
      seen.push(`${name} begins`);
      started = one;
      return () => seen.push(`${name} ends`);
    },
  });
  const first = bench.open({ around: watching('first') });
  const task = shell('trap "exit 7" USR1; echo up; while :; do sleep 0.05; done');
  first.start(task);
  await eventually(
    () =>
      existsSync(join(bench.directory(task.uid), 'stdout')) &&
      bench.read(task.uid, 'stdout') === 'up\n',
    'its output',
  );
  await eventually(() => started, 'the watch');
  expect(started?.pids().length).toBeGreaterThan(0);
  await first.close();
  const second = bench.open({ around: watching('second') });
  await inState(second, task.uid, 'RUNNING');
  started?.signalGroup('SIGUSR1');
  expect(await ended(second, task.uid)).toMatchObject({ exitCode: 7 });
  expect(seen).toEqual(['first begins', 'first ends', 'second begins', 'second ends']);
});
