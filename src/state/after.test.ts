/** Jobs that wait for others: when they go on, and when they never can. */
import { beforeEach, describe, expect, test } from 'vitest';
import { submission, TestState } from '../../test/support/testState.ts';
import type { AttemptUid, WorkerId } from '../model/ids.ts';
import type { After } from '../model/job.ts';
import type { LiveJob } from './live.ts';

let it: TestState;
let worker: WorkerId;
beforeEach(() => {
  it = new TestState();
  worker = it.join('m1');
});

const waiting = (first: LiveJob, when: After['when']): LiveJob =>
  it.submit({ after: [{ job: first.job.id, when }] });

function finish(live: LiveJob, exitCode: number): void {
  const [uid] = it.assign(live, worker) as [AttemptUid];
  it.exit(uid, exitCode);
}

/** Whether a planner is told of it. */
const isReady = (live: LiveJob): boolean => {
  it.state.deltas.tasks.add(live.tasks[0]!);
  return it.state.deltas.take(it.state, 0).pending.some(({ job }) => job === live.job.id);
};

describe('a job after another', () => {
  const cases: [After['when'], number, string][] = [
    ['ok', 0, 'PENDING'],
    ['ok', 1, 'UNSCHEDULABLE'],
    ['failed', 0, 'UNSCHEDULABLE'],
    ['failed', 1, 'PENDING'],
    ['any', 0, 'PENDING'],
    ['any', 1, 'PENDING'],
  ];
  test.each(cases)('when %s, after exit code %i is %s', (when, exitCode, state) => {
    const first = it.submit();
    const second = waiting(first, when);
    expect(isReady(second)).toBe(false);
    expect(it.apply(it.placement(second, worker))).toMatchObject({ kind: 'stale' });
    finish(first, exitCode);
    expect(second.tasks[0]?.state).toBe(state);
    expect(isReady(second)).toBe(state === 'PENDING');
  });

  test('that can never run says why, and so do those after it', () => {
    const first = it.submit();
    const second = waiting(first, 'ok');
    const third = waiting(second, 'ok');
    const cleanup = waiting(second, 'failed');
    it.apply({ kind: 'cancel', job: first.job.id, by: 'ann' });
    expect(second.tasks[0]?.reason).toBe(
      `job ${first.job.id} ended CANCELLED; this one was to run after: ok`,
    );
    expect(third.tasks[0]?.state).toBe('UNSCHEDULABLE');
    expect(isReady(cleanup)).toBe(true);
  });

  test('waits for all it names', () => {
    const [a, b] = [it.submit(), it.submit()];
    const after = [a, b].map(({ job }) => ({ job: job.id, when: 'ok' as const }));
    const last = it.submit({ after });
    finish(a, 0);
    expect(isReady(last)).toBe(false);
    finish(b, 0);
    expect(isReady(last)).toBe(true);
  });

  test('in the same submission is linked by position', () => {
    const links = [{ waits: 0, after: 1, when: 'ok' as const }];
    const result = it.apply(submission([{ name: 'train' }, { name: 'prepare' }], { links }));
    const ids = result.kind === 'submitted' ? result.ids : [];
    const [train, prepare] = ids.map((id) => it.job(id));
    expect(train?.job.spec.after).toEqual([{ job: ids[1], when: 'ok' }]);
    expect(isReady(train!)).toBe(false);
    finish(prepare!, 0);
    expect(isReady(train!)).toBe(true);
  });

  test('that has gone already waits for nobody', () => {
    expect(isReady(it.submit({ after: [{ job: 'j-gone', when: 'ok' }] }))).toBe(true);
  });
});
