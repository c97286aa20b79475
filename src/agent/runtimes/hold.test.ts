/** A failed attempt is held for a look: it can be entered, outlives its agent, and is let go. */
import { spawn } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Bench, ended, eventually, marked, observe, order, shell } from './testing.ts';

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(() => bench.clean());

test('it is still there with its directory, also for the next agent, until a stop', async () => {
  const first = bench.open();
  const task = shell('echo evidence >left; exit 3', { keepOnFailureMs: 60_000 });
  first.start(task);
  const held = await eventually(() => {
    const seen = observe(first, task.uid);
    return seen?.progress !== undefined && seen;
  }, 'the hold');
  expect(held).toMatchObject({
    state: 'RUNNING',
    progress: expect.stringMatching(
      /^failed with exit code 3; kept until \d\d:\d\d UTC \(drover cancel j1 lets go\)$/,
    ),
  });
  expect(bench.read(task.uid, 'work/left')).toBe('evidence\n');
  await first.close();
  const second = bench.open();
  expect(observe(second, task.uid)).toEqual(held);
  // As `drover exec` starts one.
  const inside = second.execContext(task.uid)!;
  const child = spawn('sleep', ['100'], { cwd: inside.cwd, env: inside.env });
  inside.joinCgroup?.(child.pid!);
  const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)));
  await eventually(() => marked(task.uid).includes(child.pid!), 'the look around');
  second.stop({ uid: task.uid, cause: 'cancelled', graceMs: 5000 });
  expect(await ended(second, task.uid)).toMatchObject({
    ...{ cause: 'exited', exitCode: 3, held: true },
  });
  expect(await gone).toBe('SIGKILL');
});

test('its time ends by itself; what succeeds, is stopped or never started is not', async () => {
  const runtime = bench.open();
  const keepOnFailureMs = 300;
  const tasks = {
    killed: shell('kill -SEGV $$', { keepOnFailureMs }),
    fine: shell('true', { keepOnFailureMs: 60_000 }),
    stopped: shell('sleep 100', { keepOnFailureMs: 60_000 }),
    missing: order(['/no/such/program'], { keepOnFailureMs: 60_000 }),
  };
  for (const task of Object.values(tasks)) runtime.start(task);
  await eventually(() => observe(runtime, tasks.stopped.uid)?.state === 'RUNNING', 'a start');
  runtime.stop({ uid: tasks.stopped.uid, cause: 'preempted', graceMs: 5000 });
  const ends = await Promise.all(
    Object.values(tasks).map(async ({ uid }) => {
      const { cause, held = false } = await ended(runtime, uid);
      return [cause, held];
    }),
  );
  expect(ends).toEqual([
    ['signalled', true],
    ['exited', false],
    ['preempted', false],
    ['never-started', false],
  ]);
});
