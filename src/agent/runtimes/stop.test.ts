/** How attempts are stopped: the whole group, with grace, whatever they do. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep, systemClock } from '../../lib/clock.ts';
import type { ProcessRuntime } from './processRuntime.ts';
import { Bench, ended, eventually, marked, observe, run, shell } from './testing.ts';

const bench = new Bench();
let runtime: ProcessRuntime;
beforeAll(() => {
  runtime = bench.open();
});
afterAll(() => bench.clean());

describe('stop', () => {
  test('TERM goes to the whole group, and the cause of the order is told', async () => {
    const task = shell(`trap 'echo parent; exit 0' TERM
      (trap 'echo child; exit' TERM; echo ready; while :; do sleep 0.05; done) &
      while :; do sleep 0.05; done`);
    runtime.start(task);
    await eventually(() => bench.read(task.uid, 'stdout') === 'ready\n', 'the trap');
    runtime.stop({ uid: task.uid, cause: 'preempted', graceMs: 5000 });
    expect(observe(runtime, task.uid)?.state).toBe('STOPPING');
    expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'preempted', exitCode: 0 });
    const said = bench.read(task.uid, 'stdout').split('\n').toSorted();
    expect(said).toEqual(['', 'child', 'parent', 'ready']);
  });

  test('KILL comes after the grace, not before', async () => {
    const task = shell(`trap '' TERM; echo ready; while :; do sleep 0.05; done`);
    runtime.start(task);
    await eventually(() => bench.read(task.uid, 'stdout') === 'ready\n', 'the trap');
    const began = performance.now();
    runtime.stop({ uid: task.uid, cause: 'timed-out', graceMs: 300 });
    expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'timed-out', signal: 'SIGKILL' });
    expect(performance.now() - began).toBeGreaterThan(290);
    expect(performance.now() - began).toBeLessThan(1500);
  });

  test('a child that saves its work keeps the grace when its parent dies at once', async () => {
    // No background child: a shell that forks one just then lets it miss the TERM.
    const task = shell(`sh -c '
        trap "sleep 0.3; echo saved; exit" TERM; echo ready; while :; do sleep 0.05; done'
      true`);
    runtime.start(task);
    await eventually(() => bench.read(task.uid, 'stdout') === 'ready\n', 'the trap');
    runtime.stop({ uid: task.uid, cause: 'cancelled', graceMs: 5000 });
    await ended(runtime, task.uid);
    expect(bench.read(task.uid, 'stdout')).toBe('ready\nsaved\n');
  });

  test('processes that left the group by setsid are killed too', async () => {
    const task = shell(`setsid sh -c 'trap "" TERM; echo ready; while :; do sleep 0.05; done' &
      sleep 100`);
    runtime.start(task);
    await eventually(() => bench.read(task.uid, 'stdout') === 'ready\n', 'the straggler');
    runtime.stop({ uid: task.uid, cause: 'cancelled', graceMs: 100 });
    await ended(runtime, task.uid);
    expect(marked(task.uid)).toEqual([]);
  });

  test('one that ended by itself before keeps its own end', async () => {
    const task = shell('exit 5');
    await run(runtime, task);
    runtime.stop({ uid: task.uid, cause: 'cancelled', graceMs: 0 });
    expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'exited', exitCode: 5 });
  });

  test('right after the start it never runs, or is stopped', async () => {
    const task = shell('echo ran; sleep 100');
    runtime.start(task);
    runtime.stop({ uid: task.uid, cause: 'cancelled', graceMs: 0 });
    expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'cancelled' });
    await sleep(systemClock, 100);
    expect(marked(task.uid)).toEqual([]);
  });

  test('an unknown uid becomes a tombstone that no start brings to life', async () => {
    const task = shell('echo ran');
    runtime.stop({ uid: task.uid, cause: 'cancelled', graceMs: 0 });
    expect(observe(runtime, task.uid)).toMatchObject({ state: 'ENDED', cause: 'never-started' });
    runtime.start(task);
    await runtime.close();
    runtime = bench.open();
    runtime.start(task);
    expect(observe(runtime, task.uid)).toMatchObject({ state: 'ENDED', cause: 'never-started' });
  });
});
