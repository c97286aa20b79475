/** Preemption: victims stop, the heir is promised what they leave, and nobody else is. */
import { beforeEach, expect, test } from 'vitest';
import { picture, TestState } from '../../test/support/testState.ts';
import type { AttemptUid, WorkerId } from '../model/ids.ts';
import type { LiveJob } from './live.ts';
import type { Preempt } from './mutations.ts';

let it: TestState;
let worker: WorkerId;
let low: LiveJob;
let victim: AttemptUid;
beforeEach(() => {
  it = new TestState();
  worker = it.join('m1');
  low = it.submit({ resources: { cpuMillis: 6000 } });
  [victim] = it.assign(low, worker) as [AttemptUid];
  it.run(victim);
});

/** As a planner would say it: this job in the place of the victim. */
function preemption(live: LiveJob, victims: AttemptUid[] = [victim]): Preempt {
  const { capacity } = it.state.workers.get(worker)!;
  const leaving = victims.map((uid) => it.state.claims.get(uid)!);
  for (const claim of leaving) capacity.give(claim);
  const { tasks, job, round } = it.placement(live, worker);
  for (const claim of leaving) capacity.take(claim);
  for (const { claim } of tasks) claim.state = 'NOMINATED';
  const gone = victims.map((uid) => ({ uid }));
  return { kind: 'preempt', job, round, tasks, victims: gone, reason: 'production goes first' };
}

const assignOf = ({ job, round, tasks }: Preempt) => ({
  kind: 'assign' as const,
  job,
  round,
  tasks: tasks.map((one) => ({ ...one, claim: { ...one.claim, state: 'HELD' as const } })),
});

test('the heir is assigned when the victim has gone, not before', () => {
  const high = it.submit({ resources: { cpuMillis: 5000 }, priority: 'production' });
  const plan = preemption(high);
  expect(it.apply(plan)).toEqual({ kind: 'done' });
  expect(it.state.attempts.get(victim)).toMatchObject({
    state: 'STOPPING',
    stopCause: 'preempted',
  });
  expect(it.state.claims.get(victim)?.state).toBe('RELEASING');
  expect(high.tasks[0]?.state).toBe('PENDING');
  expect(it.apply(assignOf(plan))).toMatchObject({ kind: 'stale' });
  it.end(victim, 'preempted');
  expect(low.tasks[0]).toMatchObject({ state: 'PENDING', interruptions: 1, failures: 0 });
  expect(it.apply(assignOf(plan))).toEqual({ kind: 'done' });
  const [heir] = plan.tasks;
  expect(it.state.attempts.get(heir!.claim.owner)).toMatchObject({ state: 'ASSIGNED', worker });
  expect(it.state.claims.get(heir!.claim.owner)?.state).toBe('HELD');
  expect(it.state.nominations.size).toBe(0);
  expect(it.state.workers.get(worker)?.capacity.cpuFree).toBe(3000);
});

test('a victim that had not begun yet is interrupted, not failed', () => {
  const early = it.submit({ resources: { cpuMillis: 2000 } });
  const [uid] = it.assign(early, worker) as [AttemptUid];
  const high = it.submit({ resources: { cpuMillis: 7000 } });
  expect(it.apply(preemption(high, [victim, uid]))).toEqual({ kind: 'done' });
  it.end(uid, 'never-started');
  expect(early.tasks[0]).toMatchObject({ state: 'PENDING', interruptions: 1, failures: 0 });
});

test('what a victim leaves is promised once', () => {
  const high = it.submit({ resources: { cpuMillis: 5000 } });
  const other = it.submit({ resources: { cpuMillis: 5000 } });
  const late = preemption(other);
  it.apply(preemption(high));
  expect(it.apply(late)).toMatchObject({ kind: 'stale' });
  it.end(victim, 'preempted');
  const small = it.submit({ resources: { cpuMillis: 4000 } });
  expect(() => it.assign(small, worker)).toThrow('no room');
});

test('a preemption whose victim has ended is stale and changes nothing', () => {
  const high = it.submit({ resources: { cpuMillis: 5000 } });
  const plan = preemption(high);
  it.exit(victim, 0);
  const before = picture(it.state);
  expect(it.apply(plan)).toMatchObject({ kind: 'stale' });
  expect(picture(it.state)).toEqual(before);
});

test('one that would not fit even without the victims is refused', () => {
  const plan = preemption(it.submit({ resources: { cpuMillis: 5000 } }));
  plan.tasks[0]!.claim.cpuMillis = 8001;
  expect(it.apply(plan)).toMatchObject({ kind: 'stale' });
  expect(it.state.attempts.get(victim)?.state).toBe('RUNNING');
});

test('a cancelled heir gives its promise back', () => {
  const high = it.submit({ resources: { cpuMillis: 5000 } });
  it.apply(preemption(high));
  it.apply({ kind: 'cancel', job: high.job.id, by: 'ann' });
  expect(it.state.nominations.size).toBe(0);
  expect(it.state.workers.get(worker)?.capacity.cpuFree).toBe(2000);
});

test('a withdrawn gang is withdrawn whole', () => {
  const gang = it.submit({ shape: { kind: 'gang', size: 2 }, resources: { cpuMillis: 3500 } });
  const plan = preemption(gang);
  expect(it.apply(plan)).toEqual({ kind: 'done' });
  expect(it.state.nominations.size).toBe(2);
  const { owner } = plan.tasks[1]!.claim;
  expect(it.apply({ kind: 'withdraw', owner, reason: 'better elsewhere' })).toEqual({
    kind: 'done',
  });
  expect(it.state.nominations.size).toBe(0);
  expect(it.apply({ kind: 'withdraw', owner, reason: '' })).toMatchObject({ kind: 'missing' });
});

test('a lost worker takes the promises on it with it', () => {
  const high = it.submit({ resources: { cpuMillis: 5000 } });
  it.apply(preemption(high));
  it.apply({ kind: 'move-worker', worker, move: 'lose', reason: 'silent' });
  expect(it.state.nominations.size).toBe(0);
  expect(it.state.claims.size).toBe(0);
  expect(high.tasks[0]?.state).toBe('PENDING');
});
