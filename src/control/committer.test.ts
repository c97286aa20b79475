/** Batches, and that nobody is answered before his is on disk. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../test/support/manualClock.ts';
import { TestState } from '../../test/support/testState.ts';
import type { Changes } from '../state/changes.ts';
import type { WriteBatch } from '../store/contract.ts';
import { createCommitter, type Committer } from './committer.ts';

let clock: ManualClock;
let it: TestState;
let committer: Committer;
/** Commits under way, to be let through or refused by hand. */
let disk: { batch: WriteBatch; done: PromiseWithResolvers<void> }[];
let committed: Changes[];
let fatal: unknown[];

beforeEach(() => {
  clock = new ManualClock();
  it = new TestState();
  disk = [];
  committed = [];
  fatal = [];
  committer = createCommitter({
    state: it.state,
    clock,
    writer: {
      commit(batch) {
        const done = Promise.withResolvers<void>();
        disk.push({ batch, done });
        return done.promise;
      },
    },
    onCommit: (changes) => void committed.push(changes),
    onFatal: (error) => void fatal.push(error),
  });
});

/** Submits and remembers whether the answer may leave. */
function submit(): { answered: boolean } {
  it.submit();
  committer.changed();
  return watch(committer.durable());
}

function watch(answer: Promise<void>): { answered: boolean } {
  const call = { answered: false };
  void answer.then(() => void (call.answered = true));
  return call;
}

describe('the committer', () => {
  test('answers at once when there is nothing to write', async () => {
    const call = watch(committer.durable());
    await clock.settle();
    expect(call.answered).toBe(true);
    expect(disk).toHaveLength(0);
  });

  test('answers only when it is on disk', async () => {
    const call = submit();
    await clock.settle();
    expect([disk.length, call.answered]).toEqual([1, false]);
    disk[0]?.done.resolve();
    await clock.settle();
    expect(call.answered).toBe(true);
    // The job, its event, and the head of the record of who did what.
    expect([committer.batches(), committer.rows()]).toEqual([1, 3]);
  });

  test('whoever falls together shares a batch', async () => {
    const calls = [submit(), submit(), submit()];
    await clock.settle();
    expect(disk).toHaveLength(1);
    expect(disk[0]?.batch).toMatchObject({ epoch: it.state.epoch, seq: 3 });
    disk[0]?.done.resolve();
    await clock.settle();
    expect(calls.every(({ answered }) => answered)).toBe(true);
  });

  test('what comes while one is under way is the next batch, and waits for that', async () => {
    const first = submit();
    await clock.settle();
    const [second, third] = [submit(), submit()];
    await clock.settle();
    expect(disk).toHaveLength(1);
    disk[0]?.done.resolve();
    await clock.settle();
    expect([first, second, third].map(({ answered }) => answered)).toEqual([true, false, false]);
    expect(disk).toHaveLength(2);
    disk[1]?.done.resolve();
    await clock.settle();
    expect([second.answered, third.answered]).toEqual([true, true]);
    expect(committed).toHaveLength(2);
  });

  test('who has changed nothing still waits for what he may have read', async () => {
    submit();
    await clock.settle();
    const reader = watch(committer.durable());
    await clock.settle();
    expect(reader.answered).toBe(false);
    disk[0]?.done.resolve();
    await clock.settle();
    expect(reader.answered).toBe(true);
  });

  test('lets ended jobs go once their end is on disk', async () => {
    const { job } = it.submit();
    it.apply({ kind: 'cancel', job: job.id, by: 'ann' });
    committer.changed();
    await clock.settle();
    expect(it.state.jobs.size).toBe(1);
    disk[0]?.done.resolve();
    await clock.settle();
    expect(it.state.jobs.size).toBe(0);
    expect([...(committed[0]?.endings.keys() ?? [])]).toEqual([job]);
  });
});

describe('a commit that fails', () => {
  test('answers nobody, ever, and says so once', async () => {
    const calls = [submit()];
    await clock.settle();
    calls.push(submit());
    disk[0]?.done.reject(new Error('disk full'));
    await clock.settle();
    calls.push(submit(), watch(committer.durable()));
    await clock.advance(60_000);
    expect(calls.map(({ answered }) => answered)).toEqual([false, false, false, false]);
    expect(fatal).toEqual([new Error('disk full')]);
    expect([disk.length, committed.length, committer.batches()]).toEqual([1, 0, 0]);
  });

  test('answers nobody who comes later with nothing to write', async () => {
    submit();
    await clock.settle();
    disk[0]?.done.reject(new Error('unknown'));
    await clock.settle();
    const reader = watch(committer.durable());
    await clock.settle();
    expect(reader.answered).toBe(false);
  });
});
