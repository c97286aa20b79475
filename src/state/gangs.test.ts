/** Gang rounds: all succeed together, one member's failure ends the round for all. */
import { beforeEach, describe, expect, test } from 'vitest';
import { TestState } from '../../test/support/testState.ts';
import type { AttemptUid, WorkerId } from '../model/ids.ts';
import type { LiveJob } from './live.ts';

let it: TestState;
let worker: WorkerId;
let gang: LiveJob;
let uids: AttemptUid[];
const states = () => gang.tasks.map(({ state }) => state).join(' ');
const attemptStates = () =>
  gang.tasks.map(({ index }) => gang.attempts.get(index)?.state ?? '-').join(' ');

/** A gang of three that runs. */
function start(fields: Parameters<TestState['submit']>[0] = {}): void {
  it = new TestState();
  worker = it.join('m1');
  gang = it.submit({ shape: { kind: 'gang', size: 3 }, retries: 1, ...fields });
  uids = it.assign(gang, worker);
  it.run(...uids);
}
beforeEach(() => start());

/** The agent stops what it was told to stop. */
function stopRest(): void {
  for (const uid of uids) {
    if (it.state.attempts.has(uid)) it.end(uid, 'gang-failed', { signal: 'SIGTERM' });
  }
}

test('members that finish early wait for the last one, then all have succeeded', () => {
  it.exit(uids[1]!, 0);
  it.exit(uids[0]!, 0);
  expect(states()).toBe('RUNNING RUNNING RUNNING');
  expect(gang.tasks.map(({ roundDone }) => roundDone)).toEqual([true, true, false]);
  expect(gang.tasks[0]?.reason).toBe('done, waiting for the rest of the gang');
  expect(it.state.claims.size).toBe(1);
  it.exit(uids[2]!, 0);
  expect(states()).toBe('SUCCEEDED SUCCEEDED SUCCEEDED');
  expect([...it.state.changes.endings.values()]).toMatchObject([{ exitCode: 0, succeeded: 3 }]);
});

test('that a member waits for the rest is written down', () => {
  it.state.takeChanges();
  it.exit(uids[1]!, 0);
  expect(it.state.changes.tasks.get(gang.tasks[1]!)).toBe('update');
});

test('a member that ends well before it was seen to run waits as well', () => {
  const other = it.submit({ shape: { kind: 'gang', size: 2 } });
  const [first] = it.assign(other, worker);
  it.exit(first!, 0);
  expect(other.tasks.map(({ state }) => state)).toEqual(['RUNNING', 'ASSIGNED']);
});

describe('a member that fails', () => {
  test('ends the round: the others are stopped, and all wait for the next one', () => {
    it.exit(uids[2]!, 0);
    it.exit(uids[1]!, 9);
    expect(gang.job.round).toBe(1);
    // The one that ran is being stopped, the one that failed and the one that was done wait again.
    expect(states()).toBe('RUNNING PENDING PENDING');
    expect(attemptStates()).toBe('STOPPING - -');
    expect(it.state.attempts.get(uids[0]!)).toMatchObject({
      stopCause: 'gang-failed',
      message: 'a member of the gang failed: exit code 9; retry 1 of 1',
    });
    stopRest();
    expect(states()).toBe('PENDING PENDING PENDING');
    expect(gang.tasks.map(({ failures }) => failures)).toEqual([0, 1, 0]);
    expect(gang.tasks.map(({ roundDone }) => roundDone)).toEqual([false, false, false]);
  });

  test('sends all into the next round together, with a new master', () => {
    it.exit(uids[1]!, 9);
    stopRest();
    const pending = it.state.deltas.take(it.state, 0).pending;
    expect(pending.map(({ round, attempts }) => [round, attempts])).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
    ]);
    const oldPort = gang.master?.port;
    const again = it.assign(gang, worker);
    expect(it.state.attempts.get(again[0]!)).toMatchObject({ n: 2, round: 1 });
    expect(gang.master?.port).not.toBe(oldPort);
    for (const uid of again) it.exit(uid, 0);
    expect(states()).toBe('SUCCEEDED SUCCEEDED SUCCEEDED');
  });

  test('the second time has used the retry of the whole gang: all have failed', () => {
    it.exit(uids[1]!, 9);
    stopRest();
    uids = it.assign(gang, worker);
    it.run(...uids);
    it.exit(uids[2]!, 0);
    it.exit(uids[0]!, 8);
    expect(states()).toBe('FAILED RUNNING FAILED');
    expect(attemptStates()).toBe('- STOPPING -');
    expect(gang.job.endedAtMs).toBeNull();
    stopRest();
    expect(states()).toBe('FAILED FAILED FAILED');
    expect([...it.state.changes.endings.values()]).toMatchObject([
      { state: 'FAILED', exitCode: 8, reason: 'exit code 8; its retry is used', failed: 3 },
    ]);
  });

  test('costs nothing twice, although the others end with codes of their own', () => {
    it.exit(uids[1]!, 9);
    it.exit(uids[0]!, 143);
    it.exit(uids[2]!, 0);
    expect(states()).toBe('PENDING PENDING PENDING');
    expect(gang.tasks.map(({ failures }) => failures)).toEqual([0, 1, 0]);
  });

  test('while all others wait already leaves nobody behind in the old round', () => {
    start({ retries: 5 });
    it.exit(uids[0]!, 1);
    it.exit(uids[1]!, 1);
    it.exit(uids[2]!, 1);
    expect(gang.job.round).toBe(1);
    const { pending } = it.state.deltas.take(it.state, 0);
    expect(new Set(pending.map(({ round }) => round))).toEqual(new Set([1]));
    expect(states()).toBe('PENDING PENDING PENDING');
  });
});

describe('a machine that is lost', () => {
  test('with several members is one interruption of the gang', () => {
    it.apply({ kind: 'move-worker', worker, move: 'lose', reason: 'silent' });
    expect(states()).toBe('PENDING PENDING PENDING');
    expect(gang.tasks.map(({ interruptions }) => interruptions)).toEqual([1, 0, 0]);
    expect(gang.job.round).toBe(1);
  });

  test('too often fails the gang', () => {
    start({ maxInterruptions: 0 });
    it.apply({ kind: 'lose', attempts: [uids[1]!], reason: 'silent' });
    stopRest();
    expect(states()).toBe('FAILED FAILED FAILED');
  });
});

describe('a cancel', () => {
  test('ends the early one at once and the others when they have stopped', () => {
    it.exit(uids[0]!, 0);
    it.apply({ kind: 'cancel', job: gang.job.id, by: 'bob' });
    expect(states()).toBe('CANCELLED RUNNING RUNNING');
    it.end(uids[1]!, 'cancelled');
    it.end(uids[2]!, 'cancelled');
    expect(states()).toBe('CANCELLED CANCELLED CANCELLED');
    expect(gang.job.endedAtMs).not.toBeNull();
  });

  test('between two rounds ends all', () => {
    it.exit(uids[1]!, 9);
    it.apply({ kind: 'cancel', job: gang.job.id, by: 'bob' });
    expect(states()).toBe('RUNNING CANCELLED RUNNING');
    stopRest();
    expect(states()).toBe('CANCELLED CANCELLED CANCELLED');
  });

  test('that finds a member done counts that one as done', () => {
    it.apply({ kind: 'cancel', job: gang.job.id, by: 'bob' });
    it.exit(uids[0]!, 0);
    expect(states()).toBe('SUCCEEDED RUNNING RUNNING');
  });
});
