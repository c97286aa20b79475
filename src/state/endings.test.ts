/** Stops, losses, cancels and retries of single tasks and arrays. */
import { beforeEach, describe, expect, test } from 'vitest';
import { picture, TestState } from '../../test/support/testState.ts';
import type { AttemptUid, JobId, WorkerId } from '../model/ids.ts';

let it: TestState;
let worker: WorkerId;
beforeEach(() => {
  it = new TestState();
  worker = it.join('m1');
});

/** A job of one task whose attempt runs. */
function running(fields: Parameters<TestState['submit']>[0] = {}) {
  const live = it.submit(fields);
  const [uid] = it.assign(live, worker);
  it.run(uid!);
  return { live, task: live.tasks[0]!, uid: uid!, attempt: it.state.attempts.get(uid!)! };
}

describe('a stop', () => {
  test('is asked for once; the claim is held until the agent says it is over', () => {
    const { uid, attempt } = running();
    const wanted = { uid, version: attempt.version };
    it.apply({ kind: 'stop', attempts: [wanted], cause: 'timed-out', reason: 'over' });
    expect(attempt).toMatchObject({ state: 'STOPPING', stopCause: 'timed-out', message: 'over' });
    expect(it.state.claims.get(uid)).toMatchObject({ state: 'RELEASING' });
    expect(it.state.workers.get(worker)?.capacity.cpuFree).toBe(7000);
    const before = picture(it.state);
    const again = { uid, version: attempt.version };
    it.apply({ kind: 'stop', attempts: [again], cause: 'preempted', reason: 'again' });
    expect(picture(it.state)).toEqual(before);
  });

  test('of several stops none when one of them has changed', () => {
    const [a, b] = [running(), running()];
    const before = picture(it.state);
    const result = it.apply({
      kind: 'stop',
      attempts: [
        { uid: a.uid, version: a.attempt.version },
        { uid: b.uid, version: b.attempt.version - 1 },
      ],
      cause: 'preempted',
      reason: '',
    });
    expect(result).toMatchObject({ kind: 'stale' });
    expect(picture(it.state)).toEqual(before);
    const gone = [{ uid: 'x' as AttemptUid, version: 1 }];
    expect(it.apply({ kind: 'stop', attempts: gone, cause: 'preempted', reason: '' }).kind).toBe(
      'stale',
    );
  });
});

describe('a loss', () => {
  test('puts the task back at once, the first time, and frees the claim', () => {
    const { task, uid, attempt } = running();
    it.apply({ kind: 'lose', attempts: [uid], reason: 'silent for 60 s' });
    expect(attempt).toMatchObject({ state: 'ENDED', cause: 'lost', stdoutBytes: null });
    expect(task).toMatchObject({ state: 'PENDING', interruptions: 1, notBeforeMs: 0 });
    expect(it.state.claims.size).toBe(0);
  });

  test('costs the user nothing, whoever noticed it', () => {
    const endings: [(uid: AttemptUid) => void, number][] = [
      [(uid) => it.exit(uid, 0), 5000],
      [(uid) => it.end(uid, 'lost', { message: 'the machine restarted' }), 0],
      [(uid) => it.apply({ kind: 'lose', attempts: [uid], reason: 'silent' }), 0],
    ];
    for (const [end, deviceMs] of endings) {
      const { uid, attempt } = running({ resources: { device: { count: 1 } } });
      it.nowMs += 5000;
      it.apply({ kind: 'charge', attempts: [uid] });
      end(uid);
      expect(attempt.chargedDeviceMs).toBe(deviceMs);
    }
  });

  test('of what has ended already is nothing', () => {
    const { uid } = running();
    it.apply({ kind: 'lose', attempts: [uid], reason: '' });
    const before = picture(it.state);
    expect(it.apply({ kind: 'lose', attempts: [uid], reason: '' })).toEqual({ kind: 'done' });
    expect(picture(it.state)).toEqual(before);
  });

  test('too often fails the task', () => {
    const { live, task, uid } = running({ maxInterruptions: 1 });
    it.apply({ kind: 'lose', attempts: [uid], reason: 'silent' });
    it.apply({ kind: 'lose', attempts: it.assign(live, worker), reason: 'silent' });
    expect(task).toMatchObject({ state: 'FAILED', interruptions: 2, exitCode: null });
    expect(live.job.endedAtMs).not.toBeNull();
  });
});

describe('a retry', () => {
  test('waits its time, is a new attempt, and the last one decides', () => {
    const { live, task, uid } = running({ retries: 1 });
    it.nowMs = 2000;
    it.exit(uid, 5);
    expect(task).toMatchObject({ state: 'PENDING', failures: 1, exitCode: 5, notBeforeMs: 3000 });
    const [second] = it.assign(live, worker);
    expect(it.state.attempts.get(second!)).toMatchObject({ n: 2 });
    it.exit(second!, 6);
    expect(task).toMatchObject({ state: 'FAILED', failures: 2, exitCode: 6, attempts: 2 });
    expect(task.reason).toBe('exit code 6; its retry is used');
  });

  test('that succeeds has no failure left to show', () => {
    const { live, task, uid } = running({ retries: 1 });
    it.exit(uid, 5);
    it.exit(it.assign(live, worker)[0]!, 0);
    expect(task).toMatchObject({ state: 'SUCCEEDED', exitCode: 0 });
    expect([...it.state.changes.endings.values()]).toMatchObject([
      { state: 'SUCCEEDED', exitCode: 0, succeeded: 1 },
    ]);
  });
});

describe('a cancel', () => {
  const cancel = (job: JobId) => it.apply({ kind: 'cancel', job, by: 'bob' });

  test('ends what waits at once and asks what runs to stop, in one array', () => {
    const live = it.submit({ shape: { kind: 'array', indices: [0, 1, 2, 3] }, retries: 9 });
    const [done, ran, assigned] = it.assign(live, worker, live.tasks.slice(0, 3));
    it.exit(done!, 0);
    it.run(ran!);
    cancel(live.job.id);
    expect(live.tasks.map(({ state }) => state)).toEqual([
      'SUCCEEDED',
      'RUNNING',
      'ASSIGNED',
      'CANCELLED',
    ]);
    expect(live.job).toMatchObject({ cancelRequestedAtMs: 1000, cancelledBy: 'bob' });
    it.end(assigned!, 'never-started');
    // No retry: the user has asked for the end.
    it.exit(ran!, 143);
    expect(live.tasks.map(({ state }) => state)).toEqual([
      'SUCCEEDED',
      'CANCELLED',
      'CANCELLED',
      'CANCELLED',
    ]);
    expect([...it.state.changes.endings.values()]).toMatchObject([
      { state: 'CANCELLED', succeeded: 1, cancelled: 3, reason: 'cancelled by bob' },
    ]);
  });

  test('that comes too late to matter lets the exit code count', () => {
    const { live, uid } = running();
    cancel(live.job.id);
    it.exit(uid, 0);
    expect(live.tasks[0]?.state).toBe('SUCCEEDED');
  });

  test('of what backs off ends it', () => {
    const { live, task, uid } = running({ retries: 1 });
    it.exit(uid, 1);
    cancel(live.job.id);
    expect(task).toMatchObject({ state: 'CANCELLED', reason: 'cancelled by bob' });
  });

  test('of what is lost meanwhile does not bring it back', () => {
    const { live, task, uid } = running();
    cancel(live.job.id);
    it.apply({ kind: 'lose', attempts: [uid], reason: 'silent' });
    expect(task.state).toBe('CANCELLED');
    expect(live.job.endedAtMs).not.toBeNull();
  });

  test('asked for again, or of what has ended, changes nothing', () => {
    const { live, uid } = running();
    cancel(live.job.id);
    let before = picture(it.state);
    expect(cancel(live.job.id)).toEqual({ kind: 'done' });
    expect(picture(it.state)).toEqual(before);
    it.exit(uid, 1);
    before = picture(it.state);
    expect(cancel(live.job.id)).toEqual({ kind: 'done' });
    expect(picture(it.state)).toEqual(before);
    expect(cancel('j-none' as JobId)).toMatchObject({ kind: 'missing' });
  });
});

describe('giving up', () => {
  const giveUp = (job: JobId) => it.apply({ kind: 'give-up', job, reason: 'too late' });

  test('ends what has never been placed; what was placed once may wait', () => {
    const live = it.submit({ shape: { kind: 'array', indices: [0, 1, 2] }, retries: 1 });
    const [retried, ran] = it.assign(live, worker, live.tasks.slice(0, 2));
    it.exit(retried!, 1);
    it.run(ran!);
    giveUp(live.job.id);
    expect(live.tasks.map(({ state }) => state)).toEqual(['PENDING', 'RUNNING', 'UNSCHEDULABLE']);
    const before = picture(it.state);
    giveUp(live.job.id);
    expect(picture(it.state)).toEqual(before);
  });

  test('of everything ends the job', () => {
    const live = it.submit();
    giveUp(live.job.id);
    expect([...it.state.changes.endings.values()]).toMatchObject([
      { state: 'UNSCHEDULABLE', reason: 'too late', exitCode: null, unschedulable: 1 },
    ]);
    expect(giveUp('j-none' as JobId)).toMatchObject({ kind: 'missing' });
  });
});

test('a job’s exit code is the first that is not 0, its start the earliest', () => {
  const live = it.submit({ shape: { kind: 'array', indices: [0, 1, 2] } });
  const uids = it.assign(live, worker);
  it.nowMs = 3000;
  it.run(uids[2]!);
  it.nowMs = 4000;
  it.exit(uids[2]!, 7);
  it.exit(uids[0]!, 0);
  it.exit(uids[1]!, 4);
  expect([...it.state.changes.endings.values()]).toMatchObject([
    { state: 'FAILED', exitCode: 4, startedAtMs: 3000, succeeded: 1, failed: 2 },
  ]);
});

test('a job leaves the memory when its end was committed, not before', () => {
  const { live, uid } = running({ timeLimitMs: 5 });
  const older = it.state.takeChanges();
  it.exit(uid, 0);
  it.state.evict(older);
  expect(it.state.jobs.size).toBe(1);
  it.state.evict(it.state.takeChanges());
  expect([it.state.jobs.size, it.state.timed.size]).toEqual([0, 0]);
  expect(it.state.jobs.has(live.job.id)).toBe(false);
});
