/** What agents say: what takes effect, and what must not. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ended, picture, seen, TestState } from '../../test/support/testState.ts';
import type { AttemptUid, WorkerId } from '../model/ids.ts';
import type { LiveJob } from './live.ts';

let it: TestState;
let worker: WorkerId;
let live: LiveJob;
let uid: AttemptUid;
beforeEach(() => {
  it = new TestState();
  worker = it.join('m1');
  live = it.submit({ retries: 1 });
  uid = it.assign(live, worker)[0]!;
});

const attempt = () => it.state.attempts.get(uid);
const kinds = () => it.state.changes.events.map(({ kind }) => kind);

describe('an attempt', () => {
  test('starts, runs and ends', () => {
    it.nowMs = 2000;
    it.observe(worker, [seen(uid, 'STARTING')]);
    expect(attempt()).toMatchObject({ state: 'STARTING', startedAtMs: null });
    expect(live.tasks[0]?.state).toBe('ASSIGNED');
    it.nowMs = 3000;
    it.observe(worker, [seen(uid, 'RUNNING')]);
    expect(attempt()).toMatchObject({ state: 'RUNNING', startedAtMs: 3000 });
    expect(live.tasks[0]).toMatchObject({ state: 'RUNNING', startedAtMs: 3000 });
    it.nowMs = 4000;
    const last = attempt();
    it.observe(worker, [ended(uid, 'exited', { exitCode: 0, message: 'fine' })]);
    expect(last).toMatchObject({ state: 'ENDED', exitCode: 0, endedAtMs: 4000, message: 'fine' });
    expect(live.tasks[0]).toMatchObject({ state: 'SUCCEEDED', exitCode: 0, endedAtMs: 4000 });
    expect(live.job.endedAtMs).toBe(4000);
    expect([it.state.attempts.size, it.state.claims.size]).toEqual([0, 0]);
    expect(it.state.workers.get(worker)?.capacity.cpuFree).toBe(8000);
    expect(kinds().slice(-4)).toEqual(['task.assigned', 'task.running', 'task.ended', 'job.ended']);
  });

  test('with idle devices says so as long as it lasts, and its beginning is one event', () => {
    const idle = { message: '0 % used', stop: false };
    const idles = () => kinds().filter((kind) => kind === 'job.idle').length;
    it.observe(worker, [{ ...seen(uid, 'RUNNING'), idle }]);
    it.observe(worker, [{ ...seen(uid, 'RUNNING'), idle: { ...idle, message: '1 % used' } }]);
    expect(attempt()?.message).toBe('its devices are idle: 0 % used');
    expect(idles()).toBe(1);
    it.observe(worker, [seen(uid, 'RUNNING')]);
    expect(attempt()).toMatchObject({ message: '', state: 'RUNNING' });
    it.observe(worker, [{ ...seen(uid, 'RUNNING'), idle }]);
    expect(idles()).toBe(2);
  });

  test('with idle devices is stopped where the rule says so, and not tried again', () => {
    const idle = { message: '0 % used', stop: true };
    it.observe(worker, [{ ...seen(uid, 'RUNNING'), idle }]);
    expect(attempt()).toMatchObject({ state: 'STOPPING', stopCause: 'cancelled' });
    it.observe(worker, [
      { ...ended(uid, 'cancelled', { signal: 'SIGTERM' }), facts: { 'used.peakMemoryBytes': '5' } },
    ]);
    const reason = 'its devices are idle: 0 % used';
    expect(live.tasks[0]).toMatchObject({ state: 'FAILED', reason, attempts: 1 });
    expect(live.job.cancelRequestedAtMs).toBeNull();
  });

  test('may run without having been seen to start', () => {
    it.observe(worker, [seen(uid, 'RUNNING')]);
    expect(attempt()?.state).toBe('RUNNING');
  });

  test('may have ended before it was ever seen: it ran all the same', () => {
    it.nowMs = 7000;
    it.exit(uid, 0);
    expect(live.tasks[0]).toMatchObject({ state: 'SUCCEEDED', startedAtMs: 7000 });
  });

  test('that never started has no start time', () => {
    it.end(uid, 'never-started', { message: 'no such command' });
    expect(live.tasks[0]).toMatchObject({
      state: 'PENDING',
      startedAtMs: null,
      failures: 1,
      reason: 'did not start: no such command; retry 1 of 1',
    });
  });

  test('keeps the message of its stop when the end brings none', () => {
    it.run(uid);
    const last = attempt();
    it.apply({ kind: 'cancel', job: live.job.id, by: 'bob' });
    it.end(uid, 'cancelled');
    expect(last).toMatchObject({ cause: 'cancelled', message: 'cancelled by bob' });
    expect(live.tasks[0]).toMatchObject({ state: 'CANCELLED', reason: 'cancelled by bob' });
  });

  test('that was asked to stop before it was seen is not stopped being stopped', () => {
    it.apply({ kind: 'cancel', job: live.job.id, by: 'bob' });
    it.observe(worker, [seen(uid, 'RUNNING')]);
    expect(attempt()).toMatchObject({ state: 'STOPPING', startedAtMs: 1000 });
  });
});

describe('nothing changes', () => {
  test.each(['STARTING', 'RUNNING'] as const)('when %s is said again', (state) => {
    it.observe(worker, [seen(uid, state)]);
    const before = picture(it.state);
    it.observe(worker, [seen(uid, state)], true);
    expect(picture(it.state)).toEqual(before);
  });

  test('when a late report says it was still starting, or that it is being stopped', () => {
    it.run(uid);
    const before = picture(it.state);
    it.observe(worker, [seen(uid, 'STARTING')]);
    it.observe(worker, [seen(uid, 'STOPPING')]);
    expect(picture(it.state)).toEqual(before);
  });

  test('when an end is said again', () => {
    it.exit(uid, 1);
    const before = picture(it.state);
    it.observe(worker, [ended(uid, 'exited', { exitCode: 0 })], true);
    expect(picture(it.state)).toEqual(before);
  });

  test('when another worker speaks of it', () => {
    const other = it.join('m2');
    const before = picture(it.state);
    it.observe(other, [ended(uid, 'exited', { exitCode: 0 })], true);
    expect(picture(it.state)).toEqual(before);
  });

  test('when a worker nobody knows speaks', () => {
    const before = picture(it.state);
    expect(it.observe('w-none' as WorkerId, [seen(uid, 'RUNNING')])).toMatchObject({
      kind: 'missing',
    });
    expect(picture(it.state)).toEqual(before);
  });
});

describe('what a complete report lacks', () => {
  test('is lost if the agent once had it', () => {
    it.observe(worker, [seen(uid, 'STARTING')]);
    it.observe(worker, [], true);
    expect(live.tasks[0]).toMatchObject({
      state: 'PENDING',
      interruptions: 1,
      failures: 0,
      reason: 'its machine was lost: the agent no longer knows it',
    });
  });

  test('is still on its way if the agent never had it', () => {
    const before = picture(it.state);
    it.observe(worker, [], true);
    expect(picture(it.state)).toEqual(before);
  });

  test('proves nothing when the report is not complete', () => {
    it.run(uid);
    it.observe(worker, [], false);
    expect(attempt()?.state).toBe('RUNNING');
  });
});
