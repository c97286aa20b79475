/** Money: what is set aside, charged and given back, and whom a budget stops. */
import { beforeEach, describe, expect, test } from 'vitest';
import { TestState } from '../../test/support/testState.ts';
import { HOUR_MS } from '../core/money.ts';
import { freePool } from '../core/placement/admission.ts';
import type { Budget } from '../model/budget.ts';
import type { AttemptUid, ClusterId, WorkerId } from '../model/ids.ts';
import { emptySnapshot, type LiveJob } from './live.ts';
import { State } from './state.ts';

const DOLLAR = 1_000_000;
const POOL = { ...freePool('default'), deviceHourMicros: 2 * DOLLAR, cpuHourMicros: DOLLAR / 10 };
let it: TestState;
let worker: WorkerId;
beforeEach(() => {
  it = new TestState(new State(emptySnapshot('c0' as ClusterId, 1), { pools: [POOL] }));
  worker = it.join('m1');
});

function run(count = 1, timeLimitMs = 0): { live: LiveJob; uid: AttemptUid } {
  const live = it.submit({ resources: { device: { count } }, timeLimitMs });
  const [uid] = it.assign(live, worker) as [AttemptUid];
  it.run(uid);
  return { live, uid };
}

const paid = () => it.state.changes.ledger.filter(({ account }) => account.startsWith('user/'));
const account = (user = 'ann') => it.state.accounts.of('default', user);

function budget(more: Partial<Budget>): void {
  const limits = { deviceMillis: null, deviceHoursPerDay: null, deviceHoursPerMonth: null };
  const money = { microsPerDay: null, microsPerMonth: null };
  const rest = { tenant: 'default', user: '', weight: 1, mode: 'hard', atLimit: 'finish' } as const;
  it.apply({ kind: 'set-budget', by: 'op', budget: { ...limits, ...money, ...rest, ...more } });
}

describe('an attempt', () => {
  test('is charged for its time at the price of its assignment, once and in double entry', () => {
    const { live, uid } = run();
    it.nowMs += HOUR_MS / 2;
    it.exit(uid, 0);
    expect(paid()).toMatchObject([
      { attempt: uid, n: 1, micros: 1.05 * DOLLAR, deviceMs: HOUR_MS / 2, pool: 'default' },
    ]);
    expect(it.state.changes.ledger.reduce((sum, { micros }) => sum + micros, 0)).toBe(0);
    expect(live.job.spentMicros).toBe(1.05 * DOLLAR);
    expect(account().account).toMatchObject({ dayMicros: 1.05 * DOLLAR });
    expect(account('').account).toMatchObject({ monthMicros: 1.05 * DOLLAR });
  });

  test('charged on the way pays the same in all', () => {
    const { live, uid } = run();
    for (const ms of [1000, 77_777, HOUR_MS, 5]) {
      it.nowMs += ms;
      it.apply({ kind: 'charge', attempts: [uid] });
      it.apply({ kind: 'charge', attempts: [uid] });
    }
    it.exit(uid, 0);
    const ms = 1000 + 77_777 + HOUR_MS + 5;
    expect(live.job.spentMicros).toBe(Math.floor((2.1 * DOLLAR * ms) / HOUR_MS));
    expect(paid().map(({ n }) => n)).toEqual(paid().map((_, at) => at + 1));
  });

  test('on a machine that failed is not charged: what it paid comes back', () => {
    const { live, uid } = run();
    it.nowMs += HOUR_MS;
    it.apply({ kind: 'charge', attempts: [uid] });
    it.nowMs += HOUR_MS;
    it.apply({ kind: 'lose', attempts: [uid], reason: 'silent' });
    expect(live.job.spentMicros).toBe(0);
    expect(account().account).toMatchObject({ dayMicros: 0, dayDeviceMs: 0 });
    expect(paid()).toHaveLength(2);
  });

  test('that never ran is not charged', () => {
    const live = it.submit({ resources: { device: {} } });
    const [uid] = it.assign(live, worker) as [AttemptUid];
    it.nowMs += HOUR_MS;
    it.end(uid, 'never-started', { hostFault: true });
    expect(it.state.changes.ledger).toEqual([]);
  });
});

describe('a hard budget', () => {
  test('of devices refuses the plan that would pass it', () => {
    budget({ deviceMillis: 1000 });
    const { uid } = run();
    const second = it.submit({ resources: { device: { share: 500 } } });
    expect(it.apply(it.placement(second, worker))).toMatchObject({
      kind: 'stale',
      reason: 'tenant default would hold more devices than its quota',
    });
    it.exit(uid, 0);
    expect(it.apply(it.placement(second, worker))).toEqual({ kind: 'done' });
  });

  test('that others have passed does not hold who asks for none of it', () => {
    const { uid } = run(2);
    budget({ deviceMillis: 1000 });
    const plain = it.submit({ resources: { device: null } });
    expect(it.apply(it.placement(plain, worker))).toEqual({ kind: 'done' });
    const one = it.submit({ resources: { device: {} } });
    it.exit(uid, 0);
    expect(it.apply(it.placement(one, worker))).toEqual({ kind: 'done' });
  });

  test('holds who was nominated for a cheaper place', () => {
    const dear = it.join('m2', { pool: 'other' });
    it.state.poolPolicies.set('other', { ...POOL, name: 'other', deviceHourMicros: 9 * DOLLAR });
    budget({ microsPerDay: 5 * DOLLAR });
    const live = it.submit({ resources: { device: {} } });
    const nominated = it.placement(live, worker).tasks.map((task) => ({
      ...task,
      claim: { ...task.claim, state: 'NOMINATED' as const },
    }));
    const plan = { job: live.job.id, round: 0, tasks: nominated, victims: [], reason: '' };
    expect(it.apply({ kind: 'preempt', ...plan })).toEqual({ kind: 'done' });
    expect(it.apply(it.placement(live, dear))).toMatchObject({ kind: 'stale' });
    const cheap = nominated.map((task) => ({
      ...task,
      claim: { ...task.claim, state: 'HELD' as const },
    }));
    const result = it.apply({ kind: 'assign', job: live.job.id, round: 0, tasks: cheap });
    expect(result).toEqual({ kind: 'done' });
  });

  test('of money counts what runs as if it ran its hour', () => {
    budget({ user: 'ann', microsPerDay: 3 * DOLLAR });
    run();
    const second = it.submit({ resources: { device: {} } });
    expect(it.apply(it.placement(second, worker))).toMatchObject({ kind: 'stale' });
    const short = it.submit({ resources: { device: {} }, timeLimitMs: HOUR_MS / 4 });
    expect(it.apply(it.placement(short, worker))).toEqual({ kind: 'done' });
  });

  test('of a day begins anew at midnight', () => {
    budget({ deviceHoursPerDay: 1.5, deviceHoursPerMonth: 100 });
    const { uid } = run();
    it.nowMs += HOUR_MS;
    it.exit(uid, 0);
    const second = it.submit({ resources: { device: {} } });
    expect(it.apply(it.placement(second, worker))).toMatchObject({ kind: 'stale' });
    it.nowMs += 24 * HOUR_MS;
    expect(it.apply(it.placement(second, worker))).toEqual({ kind: 'done' });
    expect(account('').account.monthDeviceMs).toBe(HOUR_MS);
  });

  test('that is soft or gone refuses nothing', () => {
    budget({ deviceMillis: 0, mode: 'soft' });
    run();
    budget({ deviceMillis: 0 });
    it.apply({ kind: 'delete-budget', tenant: 'default', user: '', by: 'op' });
    run();
    expect(it.apply({ kind: 'delete-budget', tenant: 'default', user: '', by: 'op' })).toEqual({
      kind: 'missing',
      what: 'budget of default',
    });
  });
});

test('past use weighs half after the half-life', () => {
  const { uid } = run();
  it.nowMs += HOUR_MS;
  it.exit(uid, 0);
  const { usage } = account().account;
  expect(usage.deviceMillis).toBeGreaterThan(0.99 * 1000 * HOUR_MS);
  const before = usage.deviceMillis;
  it.nowMs += it.state.halfLifeMs;
  const second = run();
  it.exit(second.uid, 0);
  expect(account().account.usage.deviceMillis).toBeCloseTo(before / 2, -3);
});
