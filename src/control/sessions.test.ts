/** Who was heard from when, in which order, and whose call is held. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../test/support/manualClock.ts';
import type { WorkerId } from '../model/ids.ts';
import { Sessions } from './sessions.ts';

let clock: ManualClock;
let sessions: Sessions;
const [w1, w2] = ['w1', 'w2'] as WorkerId[] as [WorkerId, WorkerId];
beforeEach(() => {
  clock = new ManualClock();
  sessions = new Sessions(clock);
});

/** Parks a call and tells whether it was answered. */
function park(worker: WorkerId, forMs = 1000): { woken: boolean } {
  const call = { woken: false };
  void sessions.park(worker, forMs).then(() => void (call.woken = true));
  return call;
}

describe('contact', () => {
  test('of a worker never heard from counts from the controller’s own start', async () => {
    await clock.advance(500);
    expect(sessions.lastContactBootMs(w1)).toBe(1000);
    expect(sessions.lastContactAtMs(w1)).toBeNull();
  });

  test('is the newest sync or join; a late one is none', async () => {
    sessions.reset(w1);
    await clock.advance(500);
    sessions.advance(w1, 1, 2);
    expect(sessions.lastContactBootMs(w1)).toBe(1500);
    await clock.advance(500);
    expect(sessions.advance(w1, 1, 2)).toBe(false);
    expect(sessions.lastContactBootMs(w1)).toBe(1500);
    expect(sessions.lastContactAtMs(w1)).toBe(clock.now() - 500);
  });
});

describe('the order of syncs', () => {
  test.each<[number, number, boolean]>([
    [2, 6, true],
    [3, 0, true],
    [2, 5, false],
    [2, 4, false],
    [1, 99, false],
  ])('after start 2, sync 5: start %i, sync %i is newer: %s', (start, seq, newer) => {
    sessions.advance(w1, 2, 5);
    expect(sessions.advance(w1, start, seq)).toBe(newer);
    expect(sessions.isNewest(w1, 2, 5)).toBe(!newer);
    expect(sessions.isNewest(w1, start, seq)).toBe(newer || (start === 2 && seq === 5));
  });

  test('begins anew with a join', () => {
    sessions.advance(w1, 9, 9);
    sessions.reset(w1);
    expect(sessions.isNewest(w1, 9, 9)).toBe(false);
    expect(sessions.advance(w1, 1, 1)).toBe(true);
  });

  test('is each worker’s own, and of a worker never seen begins anywhere', () => {
    expect(sessions.advance(w1, 5, 50)).toBe(true);
    expect(sessions.advance(w2, 1, 1)).toBe(true);
    expect(sessions.isNewest('w3' as WorkerId, 0, 0)).toBe(false);
  });
});

describe('a held call', () => {
  beforeEach(() => {
    sessions.advance(w1, 1, 1);
    sessions.advance(w2, 1, 1);
  });

  test('ends when its time is over', async () => {
    const call = park(w1);
    await clock.advance(999);
    expect([call.woken, sessions.parkedCount()]).toEqual([false, 1]);
    await clock.advance(1);
    expect([call.woken, sessions.parkedCount()]).toEqual([true, 0]);
  });

  test('ends by news for its worker only, and leaves no timer', async () => {
    const [one, two] = [park(w1), park(w2)];
    sessions.wakeSoon([w1]);
    await clock.settle();
    expect([one.woken, two.woken, clock.waiting]).toEqual([true, false, 1]);
    sessions.wakeSoon([w1]);
  });

  test.each<[string, () => void]>([
    ['a newer sync', () => void sessions.advance(w1, 1, 2)],
    ['a join', () => sessions.reset(w1)],
    ['its worker being forgotten', () => sessions.forget(w1)],
    ['the controller closing', () => sessions.releaseAll()],
  ])('ends by %s', async (_what, happen) => {
    const call = park(w1);
    happen();
    await clock.settle();
    expect([call.woken, clock.waiting]).toEqual([true, 0]);
  });

  test('is not held for a worker that is not there', async () => {
    sessions.forget(w1);
    const call = park(w1);
    await clock.settle();
    expect(call.woken).toBe(true);
  });
});

test('a storm of news wakes in slices, so that others get their turn', async () => {
  const workers = Array.from({ length: 250 }, (_, i) => `w${i}` as WorkerId);
  for (const worker of workers) sessions.advance(worker, 1, 1);
  const calls = workers.map((worker) => park(worker));
  const woken = () => calls.filter((call) => call.woken).length;
  sessions.wakeSoon(workers);
  await Promise.resolve();
  expect([woken(), sessions.parkedCount()]).toEqual([100, 150]);
  // News that come meanwhile do not start a second row of slices.
  sessions.wakeSoon(workers.slice(200));
  expect(sessions.parkedCount()).toBe(150);
  await clock.settle();
  expect(woken()).toBe(250);
});
