/** Assignment: attempt and claim together, all tasks of a plan or none. */
import { beforeEach, describe, expect, test } from 'vitest';
import { picture, TestState } from '../../test/support/testState.ts';
import type { JobId, WorkerId } from '../model/ids.ts';
import type { Assign } from './mutations.ts';

let it: TestState;
let worker: WorkerId;
beforeEach(() => {
  it = new TestState();
  worker = it.join('m1');
});

test('an assignment is an attempt, a claim and an event', () => {
  const live = it.submit({ resources: { cpuMillis: 2000, device: { count: 2 }, ports: 1 } });
  it.nowMs = 5000;
  const [uid] = it.assign(live, worker);
  expect(it.state.attempts.get(uid!)).toMatchObject({
    task: live.tasks[0]?.id,
    n: 1,
    worker,
    state: 'ASSIGNED',
    assignedAtMs: 5000,
    startedAtMs: null,
  });
  expect(it.state.claims.get(uid!)).toMatchObject({
    cpuMillis: 2000,
    devices: [0, 1],
    ports: [2000],
    state: 'HELD',
  });
  expect(live.tasks[0]).toMatchObject({ state: 'ASSIGNED', attempts: 1, reason: '' });
  expect(it.state.workers.get(worker)?.capacity).toMatchObject({ cpuFree: 6000 });
  expect(it.state.changes.events.at(-1)).toMatchObject({ kind: 'task.assigned', attempt: uid });
  expect(it.state.wake).toContain(worker);
});

/** Each spoils a good plan for a gang of two in one way. */
const spoiled: [string, string, (plan: Assign) => void][] = [
  ['whose job nobody knows', 'missing', (plan) => void (plan.job = 'j-none' as JobId)],
  ['whose task nobody knows', 'missing', (plan) => void (plan.tasks[1]!.task = 'j.9' as never)],
  ['made for an older round', 'stale', (plan) => void (plan.round = -1)],
  ['made for an older version', 'stale', (plan) => void (plan.tasks[1]!.version = 0)],
  [
    'for a worker nobody knows',
    'stale',
    (plan) => void (plan.tasks[1]!.claim.worker = 'w' as never),
  ],
  ['for more than is free', 'stale', (plan) => void (plan.tasks[1]!.claim.cpuMillis = 7001)],
  ['for a device there is not', 'stale', (plan) => void (plan.tasks[1]!.claim.devices = [7])],
  [
    'whose members want the same port',
    'stale',
    (plan) => void (plan.tasks[1]!.claim.ports = [...plan.tasks[0]!.claim.ports]),
  ],
];

describe('a plan is refused whole, and changes nothing,', () => {
  test.each(spoiled)('%s', (_what, kind, spoil) => {
    const gang = it.submit({ shape: { kind: 'gang', size: 2 } });
    const plan = it.placement(gang, worker);
    spoil(plan);
    const before = picture(it.state);
    expect(it.apply(plan).kind).toBe(kind);
    expect(picture(it.state)).toEqual(before);
  });

  test('when it comes a second time', () => {
    const plan = it.placement(it.submit(), worker);
    it.apply(plan);
    const before = picture(it.state);
    expect(it.apply(plan)).toMatchObject({ kind: 'stale' });
    expect(picture(it.state)).toEqual(before);
  });

  test('when the job was cancelled meanwhile', () => {
    const array = it.submit({ shape: { kind: 'array', indices: [0, 1] } });
    it.run(...it.assign(array, worker, [array.tasks[0]!]));
    const plan = it.placement(array, worker, [array.tasks[1]!]);
    it.apply({ kind: 'cancel', job: array.job.id, by: 'ann' });
    const before = picture(it.state);
    expect(it.apply(plan)).toEqual({ kind: 'stale', reason: 'the job was cancelled' });
    expect(picture(it.state)).toEqual(before);
  });

  test.each<[string, () => void]>([
    [
      'drains',
      () => void it.apply({ kind: 'drain', worker, draining: true, by: 'ann', tenant: 'default' }),
    ],
    [
      'is out of contact',
      () => void it.apply({ kind: 'move-worker', worker, move: 'suspect', reason: 'silent' }),
    ],
    [
      'was lost',
      () => void it.apply({ kind: 'move-worker', worker, move: 'lose', reason: 'silent' }),
    ],
  ])('when its worker %s', (_what, close) => {
    const plan = it.placement(it.submit(), worker);
    close();
    const before = picture(it.state);
    expect(it.apply(plan)).toEqual({ kind: 'stale', reason: `worker ${worker} takes no work` });
    expect(picture(it.state)).toEqual(before);
  });

  test('when two plans want the same room, the second', () => {
    const [a, b] = [it.submit(), it.submit()].map((live) => {
      live.job.spec = {
        ...live.job.spec,
        resources: { ...live.job.spec.resources, cpuMillis: 5000 },
      };
      return it.placement(live, worker);
    });
    expect(it.apply(a!)).toEqual({ kind: 'done' });
    expect(it.apply(b!)).toEqual({
      kind: 'stale',
      reason: `worker ${worker} has no room any more`,
    });
  });
});
