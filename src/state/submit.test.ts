/** Submission: shapes, keys and what is remembered of them. */
import { describe, expect, test } from 'vitest';
import { picture, submission, TestState } from '../../test/support/testState.ts';
import type { JobId } from '../model/ids.ts';
import { IDEMPOTENCY_MS } from './submit.ts';

describe('a submission', () => {
  test('makes a pending job of one task, and tells planner, writer and history', () => {
    const test = new TestState();
    const { job, tasks, counts } = test.submit({ name: 'train' });
    expect(job).toMatchObject({ owner: 'ann', cluster: 'local', taskCount: 1, round: 0 });
    expect(tasks).toMatchObject([{ id: `${job.id}.0`, index: 0, state: 'PENDING', attempts: 0 }]);
    expect(counts).toMatchObject({ PENDING: 1, RUNNING: 0 });
    const { jobs, tasks: rows, events } = test.state.changes;
    // A task has no row of its own until something happens to it.
    expect([[...jobs.values()], [...rows.values()]]).toEqual([['insert'], []]);
    expect(events).toMatchObject([
      { kind: 'job.submitted', job: job.id, seq: 1, atMs: 1000, data: { by: 'ann', tasks: 1 } },
    ]);
    expect(test.state.deltas.take(test.state, 0).pending).toMatchObject([{ task: `${job.id}.0` }]);
  });

  test('of an array has a task per index, in order, and finds each', () => {
    const test = new TestState();
    const { job, tasks } = test.submit({ shape: { kind: 'array', indices: [70, 3, 12, 9] } });
    expect(tasks.map(({ index }) => index)).toEqual([3, 9, 12, 70]);
    expect(job.taskCount).toBe(4);
    for (const task of tasks) expect(test.state.task(task.id)?.task).toBe(task);
    for (const index of ['0', '4', '71', '-1', '', 'x']) {
      expect(test.state.task(`${job.id}.${index}` as never)?.task.index ?? null).toBeNull();
    }
  });

  test('of a gang has a task per member', () => {
    const { tasks } = new TestState().submit({ shape: { kind: 'gang', size: 3 } });
    expect(tasks.map(({ index }) => index)).toEqual([0, 1, 2]);
  });

  test('of several jobs gives ids that sort in their order', () => {
    const test = new TestState();
    const result = test.apply(submission(Array.from({ length: 50 }, () => ({}))));
    if (result.kind !== 'submitted') throw new Error(result.kind);
    expect(result.ids.toSorted()).toEqual(result.ids);
    expect(new Set(result.ids).size).toBe(50);
  });

  test('with a limit on time is among the timed ones', () => {
    const test = new TestState();
    const timed = [test.submit({ timeLimitMs: 1 }), test.submit({ startWithinMs: 1 })];
    test.submit();
    expect([...test.state.timed]).toEqual(timed);
  });
});

describe('an idempotency key', () => {
  const keyed = (bodyHash: string, tenant = 'default') =>
    submission([{}, {}], { idempotencyKey: 'k', bodyHash, tenant });

  test('with the same body gives the same jobs and changes nothing', () => {
    const test = new TestState();
    const first = test.apply(keyed('h'));
    const before = picture(test.state);
    expect(test.apply(keyed('h'))).toEqual({ ...first, replayed: true });
    expect(picture(test.state)).toEqual(before);
  });

  test('with another body is refused and changes nothing', () => {
    const test = new TestState();
    test.apply(keyed('h'));
    const before = picture(test.state);
    expect(test.apply(keyed('other'))).toEqual({ kind: 'key-mismatch' });
    expect(picture(test.state)).toEqual(before);
  });

  test('is each tenant’s own', () => {
    const test = new TestState();
    test.apply(keyed('h'));
    expect(test.apply(keyed('other', 'b'))).toMatchObject({ kind: 'submitted', replayed: false });
  });

  test('is remembered when its jobs have ended and left, for a day', () => {
    const test = new TestState();
    const first = test.apply(keyed('h'));
    if (first.kind !== 'submitted') throw new Error(first.kind);
    for (const job of first.ids) test.apply({ kind: 'cancel', job, by: 'ann' });
    test.state.evict(test.state.takeChanges());
    expect(test.state.jobs.size).toBe(0);
    test.nowMs += IDEMPOTENCY_MS - 1;
    expect(test.apply(keyed('h'))).toMatchObject({ replayed: true });
    test.nowMs += 1;
    expect(test.apply(keyed('h'))).toMatchObject({ replayed: false });
    expect(test.state.idempotency.size).toBe(1);
  });
});

test('what is asked for alike is one class to the planner, and nothing else is', () => {
  const test = new TestState();
  const key = (fields: Parameters<TestState['submit']>[0]) => test.submit(fields).classKey;
  const gpu = (models: string[]) => ({ resources: { device: { models } } });
  expect(key({ name: 'a', command: ['x'], env: { A: '1' } })).toBe(key({ retries: 3 }));
  const different = [
    key({}),
    key({ priority: 'interactive' }),
    key({ pool: 'lab' }),
    key({ shape: { kind: 'gang', size: 2 } }),
    key({ shape: { kind: 'gang', size: 3 } }),
    key({ resources: { cpuMillis: 2 } }),
    key({ resources: { memoryBytes: 2 } }),
    key({ resources: { ports: 2 } }),
    key(gpu([])),
    key(gpu(['A', 'B'])),
    key(gpu(['A,B'])),
    key({ pool: 'x', ...gpu(['a|1|1000|0|0']) }),
    key({ pool: 'x|1|1000|0|0|gpu|1|1000|0|a' }),
  ];
  expect(new Set(different).size).toBe(different.length);
});

test('rank 0 of a gang always has a port to be found at', () => {
  const test = new TestState();
  const worker = test.join('m1');
  const gang = test.submit({ shape: { kind: 'gang', size: 2 } });
  test.assign(gang, worker);
  expect([...test.state.claims.values()].map(({ ports }) => ports)).toEqual([[2000], [2001]]);
  expect(gang.master).toEqual({ address: '10.0.0.1', port: 2000 });
  const alone = test.submit({ shape: { kind: 'gang', size: 1 } });
  test.assign(alone, worker);
  expect(alone.master).toEqual({ address: '10.0.0.1', port: 2002 });
  const asked = test.submit({ shape: { kind: 'gang', size: 1 }, resources: { ports: 3 } });
  const [uid] = test.assign(asked, worker);
  expect(test.state.claims.get(uid!)?.ports).toHaveLength(3);
});

test('an id nobody has is no job', () => {
  const { state } = new TestState();
  expect(state.task('j-none.0' as never)).toBeUndefined();
  expect(state.jobs.get('j-none' as JobId)).toBeUndefined();
});
