/** Places kept for what does not fit yet, and who may use them meanwhile. */
import { describe, expect, test } from 'vitest';
import {
  account,
  gpus,
  heldGpus,
  NOTHING,
  placed,
  planOf,
  told,
  viewOf,
  waiting,
  wantingGpus,
} from '../../../test/support/planning.ts';
import type { AttemptUid } from '../../model/ids.ts';

const MIN_MS = 60_000;
const HOUR_MS = 60 * MIN_MS;
const DAY_MS = 24 * HOUR_MS;

/** Two of four devices of w1 are held for an hour; the large job wants all four. */
const running = wantingGpus(2, { timeLimitMs: HOUR_MS, key: 'running' });
const large = wantingGpus(4, { tenant: 'l', key: 'large' });
const long = wantingGpus(1, { tenant: 's', key: 'long' });
const short = wantingGpus(1, { tenant: 's', key: 'short', timeLimitMs: 30 * MIN_MS });

function busy(...pending: ReturnType<typeof waiting>[]) {
  return viewOf({
    requests: [running, large, long, short],
    workers: [gpus('w1', 4)],
    claims: [heldGpus(running, 'j0', 'w1', 0)],
    pending,
  });
}

describe('the first that does not fit', () => {
  test('has its place kept until what runs must have ended', () => {
    const view = busy(waiting(large, 'j1'), waiting(long, 'j2'));
    const made = planOf(view, 0);
    expect(placed(made)).toEqual([]);
    expect(made.waiting).toMatchObject([
      { classKey: 'large', why: { code: 'NO_ROOM', reservation: { atMs: HOUR_MS, worker: 'w1' } } },
      { classKey: 'long', why: { code: 'RESERVED_FOR_OTHERS' } },
    ]);
    expect(told(made)['large']).toContain('; room is kept for it on w1');
    view.update({ ...NOTHING, claimsGone: ['j0.0.1.cd' as AttemptUid] });
    expect(placed(planOf(view, HOUR_MS))).toEqual(['j1.0>w1']);
  });

  test('what ends in time runs there meanwhile', () => {
    const view = busy(waiting(large, 'j1'), waiting(short, 'j2'), waiting(short, 'j3'));
    expect(placed(planOf(view, 0))).toEqual(['j2.0>w1', 'j3.0>w1']);
  });

  test('but not once it would end too late', () => {
    const view = busy(waiting(large, 'j1'));
    planOf(view, 0);
    view.update({ ...NOTHING, pending: [waiting(short, 'j2')] });
    expect(placed(planOf(view, 40 * MIN_MS))).toEqual([]);
    const again = busy(waiting(large, 'j1'));
    planOf(again, 0);
    again.update({ ...NOTHING, pending: [waiting(short, 'j2')] });
    expect(placed(planOf(again, 0, { backfill: false }))).toEqual([]);
  });

  test('other workers stay open to everybody', () => {
    const view = busy(waiting(large, 'j1'), waiting(long, 'j2'));
    view.update({ ...NOTHING, workers: [gpus('w2', 2)] });
    expect(placed(planOf(view, 0))).toEqual(['j2.0>w2']);
  });

  test('takes another place when that is free sooner', () => {
    const view = busy(waiting(large, 'j1'), waiting(long, 'j2'));
    planOf(view, 0);
    view.update({ ...NOTHING, workers: [gpus('w2', 4)] });
    expect(placed(planOf(view, MIN_MS))).toEqual(['j1.0>w2', 'j2.0>w1']);
  });

  test('has nothing kept where nobody knows when what runs will end', () => {
    const view = viewOf({
      requests: [running, large, long],
      workers: [gpus('w1', 4)],
      claims: [heldGpus(long, 'j0', 'w1', 0)],
      pending: [waiting(large, 'j1'), waiting(long, 'j2')],
    });
    expect(placed(planOf(view, 0))).toEqual(['j2.0>w1']);
  });

  test('gives way to a higher band, and looks again', () => {
    const urgent = wantingGpus(1, { tenant: 'p', band: 0, key: 'urgent' });
    const view = busy(waiting(large, 'j1'));
    planOf(view, 0);
    view.update({ ...NOTHING, requests: [urgent], pending: [waiting(urgent, 'j2')] });
    const made = planOf(view, 0, { preemption: false });
    expect([placed(made), made.more]).toEqual([['j2.0>w1'], true]);
    // The urgent one has no limit, so nobody knows when there will be room.
    expect(planOf(view, 0, { preemption: false })).toMatchObject({ placements: [] });
    expect(view.reservations.size).toBe(0);
  });

  test('gives way to a higher band also when room comes that is kept', () => {
    const urgent = wantingGpus(1, { tenant: 'p', band: 0, key: 'urgent' });
    const view = busy(waiting(large, 'j1'));
    const policy = { preemption: false };
    view.update({
      ...NOTHING,
      requests: [urgent],
      claims: [heldGpus(running, 'j9', 'w1', 2)],
      pending: [waiting(urgent, 'j2')],
    });
    expect(placed(planOf(view, 0, policy))).toEqual([]);
    expect(view.reservations.size).toBe(1);
    view.update({ ...NOTHING, claimsGone: ['j9.0.1.cd' as AttemptUid] });
    expect(placed(planOf(view, MIN_MS, policy))).toEqual(['j2.0>w1']);
  });

  test('of two kept in one place the one that was first there starts', () => {
    const pair = wantingGpus(4, { tenant: 'g', key: 'pair', band: 1, gangSize: 2 });
    const policy = { preemption: false };
    const view = busy(waiting(large, 'j1'));
    const slow = wantingGpus(2, { timeLimitMs: 2 * HOUR_MS, key: 'slow' });
    view.update({
      ...NOTHING,
      requests: [pair, slow],
      workers: [gpus('w2', 4)],
      claims: [heldGpus(slow, 'j8', 'w2', 0)],
    });
    expect(placed(planOf(view, 0, policy))).toEqual([]);
    view.update({ ...NOTHING, pending: [waiting(pair, 'j2', 0), waiting(pair, 'j2', 1)] });
    planOf(view, 0, policy);
    const workers = [...view.reservations.values()].map(({ claims }) =>
      claims.map(({ worker }) => worker).toSorted(),
    );
    expect(workers).toEqual([['w1'], ['w1', 'w2']]);
    // Else the pair would keep it from its place until w2 is free as well.
    view.update({ ...NOTHING, claimsGone: ['j0.0.1.cd' as AttemptUid] });
    expect(placed(planOf(view, MIN_MS, policy))).toEqual(['j1.0>w1']);
  });

  test('has nothing kept while a quota holds it back', () => {
    const view = busy(waiting(large, 'j1'), waiting(long, 'j2'));
    expect(placed(planOf(view, 0))).toEqual([]);
    expect(view.reservations.size).toBe(1);
    view.update({
      ...NOTHING,
      accounts: [account('l', { deviceMillis: 1000 })],
      claimsGone: ['j0.0.1.cd' as AttemptUid],
    });
    const made = planOf(view, MIN_MS);
    expect(told(made)['large']).toContain('at the limit of devices at once');
    expect(view.reservations.size).toBe(0);
    const next = made.more ? placed(planOf(view, MIN_MS)) : [];
    expect([...placed(made), ...next]).toEqual(['j2.0>w1']);
  });

  test('gives it up when others of its tenant have used the quota up meanwhile', () => {
    const other = wantingGpus(1, { tenant: 'l', key: 'other' });
    const view = viewOf({
      requests: [running, large, long, other],
      workers: [gpus('w1', 4), gpus('w2', 1)],
      claims: [heldGpus(running, 'j0', 'w1', 0)],
      accounts: [account('l', { deviceMillis: 4000 })],
      pending: [waiting(large, 'j1')],
    });
    planOf(view, 0);
    expect(view.reservations.size).toBe(1);
    view.update({
      ...NOTHING,
      claims: [heldGpus(other, 'j3', 'w2', 0)],
      pending: [waiting(long, 'j2')],
    });
    const made = planOf(view, MIN_MS);
    expect(view.reservations.size).toBe(0);
    expect(told(made)['large']).toContain('at the limit of devices at once');
    const next = made.more ? placed(planOf(view, MIN_MS)) : [];
    expect([...placed(made), ...next]).toEqual(['j2.0>w1']);
  });

  test('is dropped with its worker or its job', () => {
    const view = busy(waiting(large, 'j1'), waiting(long, 'j2'));
    planOf(view, 0);
    view.update({ ...NOTHING, notPending: [waiting(large, 'j1').task] });
    expect(placed(planOf(view, 0))).toEqual(['j2.0>w1']);
    const closed = busy(waiting(large, 'j1'));
    planOf(closed, 0);
    closed.update({ ...NOTHING, workers: [gpus('w1', 4, { open: false })] });
    planOf(closed, 0);
    expect(closed.reservations.size).toBe(0);
  });
});

describe('what has waited too long', () => {
  const aged = waiting(large, 'j1', 0, { sinceMs: 0 });
  const full = (...pending: ReturnType<typeof waiting>[]) =>
    viewOf({
      requests: [long, large],
      workers: [gpus('w1', 4)],
      claims: [0, 1, 2].map((at) => heldGpus(long, `j0${at}`, 'w1', at, { sinceMs: DAY_MS })),
      pending,
    });

  test('has a worker cleared for it, though nobody knows when that will be', () => {
    const view = full(aged, waiting(long, 'j9', 0, { sinceMs: DAY_MS }));
    const made = planOf(view, DAY_MS);
    expect(placed(made)).toEqual([]);
    expect(made.waiting[0]).toMatchObject({
      classKey: 'large',
      why: { reservation: { atMs: null, worker: 'w1' } },
    });
    for (const at of [0, 1, 2]) {
      view.update({ ...NOTHING, claimsGone: [`j0${at}.0.1.cd` as AttemptUid] });
      expect(placed(planOf(view, DAY_MS + MIN_MS))).toEqual(at === 2 ? ['j1.0>w1'] : []);
    }
  });

  test('a plan is asked for when that time comes', () => {
    const view = full(aged, waiting(long, 'j9', 0, { sinceMs: DAY_MS }));
    const made = planOf(view, DAY_MS - HOUR_MS);
    expect(placed(made)).toEqual(['j9.0>w1']);
    expect(made.nextAtMs).toBe(DAY_MS);
    planOf(view, DAY_MS);
    expect(view.reservations.size).toBe(1);
  });

  test('higher bands do not overtake it', () => {
    const urgent = wantingGpus(1, { tenant: 'p', band: 0, key: 'urgent' });
    const view = full(aged);
    planOf(view, DAY_MS);
    view.update({ ...NOTHING, requests: [urgent], pending: [waiting(urgent, 'j2')] });
    expect(placed(planOf(view, DAY_MS, { preemption: false }))).toEqual([]);
  });

  test('another worker is cleared when the first takes too long, with more patience', () => {
    const view = full(aged);
    view.update({
      ...NOTHING,
      workers: [gpus('w2', 4)],
      claims: [heldGpus(large, 'j8', 'w2', 0, { sinceMs: DAY_MS - HOUR_MS })],
    });
    const first = planOf(view, DAY_MS);
    const at = (): string | undefined => [...view.reservations.values()][0]?.claims[0]?.worker;
    expect(at()).toBe('w1');
    // What has run longest is guessed to run longest: by then that is w1.
    const again = first.nextAtMs!;
    view.update({ ...NOTHING, claimsGone: ['j8.0.1.cd' as AttemptUid] });
    view.update({
      ...NOTHING,
      claims: [heldGpus(large, 'j7', 'w2', 0, { sinceMs: again - MIN_MS })],
    });
    planOf(view, again - 1);
    expect(at()).toBe('w1');
    const second = planOf(view, again);
    expect(at()).toBe('w2');
    expect(second.nextAtMs! - again).toBeGreaterThanOrEqual(2 * (again - DAY_MS));
  });
});
