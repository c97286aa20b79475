/** Asked why a job waits, where it stands, and where and when something would run. */
import type { WorkerId } from '../../model/ids.ts';
import { describe, expect, test } from 'vitest';
import {
  account,
  gpus,
  heldGpus,
  NOTHING,
  planOf,
  viewOf,
  waiting,
  wanting,
  wantingGpus,
} from '../../../test/support/planning.ts';
import type { AttemptUid, JobId } from '../../model/ids.ts';
import { DEFAULT_POLICY } from '../schedule/plan.ts';
import type { PlannerDeltas, PlannerView } from '../schedule/view.ts';
import { queuePosition } from './position.ts';
import { predictStart, previewPlacement } from './preview.ts';
import { explainJob } from './why.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const one = wantingGpus(1, { key: 'one' });
const two = wantingGpus(2, { key: 'two', timeLimitMs: HOUR_MS });

const why = (view: PlannerView, job: string, nowMs = 1000) => explainJob(view, job as JobId, nowMs);
const place = (view: PlannerView, job: string, nowMs = 1000) =>
  queuePosition(view, job as JobId, nowMs, DEFAULT_POLICY);

describe('why', () => {
  const busy = (more: Partial<PlannerDeltas> = {}) =>
    viewOf({
      requests: [one, two, ...(more.requests ?? [])],
      workers: [gpus('w1', 2)],
      claims: [heldGpus(two, 'j0', 'w1')],
      pending: [waiting(one, 'j1')],
      ...(({ requests: _requests, ...rest }) => rest)(more),
    });

  test('nothing waits: nothing to say', () => {
    expect(why(busy(), 'j0')).toBeNull();
  });

  test('no room, with how many workers for which reason; asking changes nothing', () => {
    const view = busy();
    const said = why(view, 'j1');
    expect(said).toMatchObject({ code: 'NO_ROOM', workers: [{ reason: 'devices', count: 1 }] });
    planOf(view);
    expect(why(view, 'j1')).toEqual(said);
    view.update({ ...NOTHING, claimsGone: ['j0.0.1.cd' as AttemptUid] });
    expect(why(view, 'j1')).toMatchObject({ code: 'BEHIND' });
    expect(planOf(view).placements).toHaveLength(1);
  });

  test('a place is kept for it', () => {
    const view = busy({ pending: [waiting(two, 'j1')] });
    planOf(view, 1000);
    expect(why(view, 'j1')).toMatchObject({
      code: 'NO_ROOM',
      reservation: { atMs: HOUR_MS, worker: 'w1' },
    });
  });

  test('a limit, a back-off, an array’s own limit, an incomplete gang, a nomination', () => {
    const limited = wantingGpus(1, { key: 'limited', arrayLimit: 1 });
    const gang = wantingGpus(1, { key: 'gang', gangSize: 2 });
    const urgent = wantingGpus(1, { key: 'urgent', band: 0 });
    const view = busy({
      requests: [limited, gang, urgent],
      claims: [heldGpus(limited, 'j3', 'w1'), heldGpus(one, 'j7', 'w1', 1)],
      pending: [
        waiting(one, 'j1'),
        waiting(one, 'j2', 0, { notBeforeMs: 31_000 }),
        waiting(limited, 'j3', 1),
        waiting(gang, 'j4', 0),
        waiting(urgent, 'j5'),
      ],
    });
    planOf(view);
    expect(why(view, 'j2')).toMatchObject({
      code: 'BACKOFF',
      sentence: 'is tried again in 30 seconds',
    });
    expect(why(view, 'j3')).toMatchObject({ code: 'ARRAY_LIMIT' });
    expect(why(view, 'j4')).toMatchObject({ code: 'INCOMPLETE' });
    expect(why(view, 'j5')).toMatchObject({ code: 'PREEMPTING', reservation: { worker: 'w1' } });
    view.update({ ...NOTHING, accounts: [account('t', { deviceMsLeft: 0 })] });
    expect(why(view, 'j1')).toMatchObject({ code: 'QUOTA', quota: { limit: 'device-time' } });
  });
});

describe('the position', () => {
  const of = (tenant: string, user: string, band = 2) =>
    wantingGpus(1, { tenant, user, band, key: `${tenant}${user}${band}` });
  const full = { workers: [gpus('w1', 4)] };

  test('the bands above, then the jobs of the user that are older', () => {
    const [mine, high] = [of('t', 'u'), of('x', 'y', 0)];
    const view = viewOf({
      ...full,
      requests: [mine, high],
      pending: [
        waiting(high, 'j1'),
        waiting(high, 'j2'),
        waiting(mine, 'j3', 0),
        waiting(mine, 'j3', 1),
        waiting(mine, 'j4'),
        waiting(mine, 'j5'),
      ],
    });
    expect(place(view, 'j4')).toMatchObject({
      position: 5,
      ahead: 4,
      byRule: [
        { rule: 'band', tasks: 2 },
        { rule: 'age', tasks: 2 },
      ],
      // Jobs of another tenant are counted, not named.
      aheadSample: [{ job: 'j3', rule: 'age' }],
      rule: expect.stringMatching(/^batch work by share: tenant t has 0.0 %, user u 0.0 %/),
    });
  });

  test('who has the smaller share, as long as that is so', () => {
    const [mine, other] = [of('t', 'u'), of('o', 'u')];
    const view = viewOf({
      ...full,
      requests: [mine, other],
      claims: [heldGpus(mine, 'j0', 'w1', 0), heldGpus(mine, 'j1', 'w1', 1)],
      pending: [waiting(mine, 'j2'), ...[0, 1, 2, 3, 4].map((at) => waiting(other, 'j3', at))],
    });
    expect(place(view, 'j2')).toMatchObject({ ahead: 2, byRule: [{ rule: 'share', tasks: 2 }] });
    expect(place(view, 'j3')).toMatchObject({ ahead: 0 });
  });

  test('what has waited too long', () => {
    const [mine, other] = [of('t', 'u'), of('o', 'u')];
    const view = viewOf({
      ...full,
      requests: [mine, other],
      pending: [waiting(mine, 'j2', 0, { sinceMs: DAY_MS }), waiting(other, 'j3')],
    });
    expect(place(view, 'j2', DAY_MS)).toMatchObject({ byRule: [{ rule: 'aged', tasks: 1 }] });
    expect(place(view, 'j3', DAY_MS)).toMatchObject({
      position: 1,
      rule: 'it has waited longer than 24 hours: only older batch work goes first',
    });
  });

  test('none for what does not stand in the queue', () => {
    const mine = of('t', 'u');
    const view = viewOf({
      ...full,
      requests: [mine],
      pending: [waiting(mine, 'j1', 0, { notBeforeMs: 5000 })],
    });
    expect([place(view, 'j1'), place(view, 'j9')]).toEqual([null, null]);
  });
});

describe('where it would run', () => {
  const dear = { pool: 'dear', deviceHourMicros: 4_100_000, cpuHourMicros: 0 };
  const view = viewOf({
    requests: [two],
    workers: [gpus('w1', 2), gpus('w2', 2, dear), gpus('w3', 1, { pool: 'small' })],
    claims: [heldGpus(two, 'j0', 'w1', 0, { sinceMs: 1000 })],
  });

  test('each pool with its time and price, the soonest first', () => {
    expect(previewPlacement(view, two, 1000)).toEqual([
      {
        pool: 'dear',
        startsAtMs: 1000,
        worker: 'w2',
        pricePerHourMicros: 8_200_000,
        reason: 'there is room on w2',
      },
      {
        pool: 'default',
        startsAtMs: HOUR_MS + 1000,
        worker: 'w1',
        pricePerHourMicros: 0,
        reason: 'when what runs there has reached its time limit',
      },
      {
        pool: 'small',
        startsAtMs: null,
        worker: null,
        pricePerHourMicros: 0,
        reason:
          'it needs a worker with 2 gpu and 2 CPUs in pool small; the largest has 1 gpu and 1 CPU',
      },
    ]);
    expect(previewPlacement(view, { ...two, pool: 'small' }, 1000)).toHaveLength(1);
  });

  test('on the worker that has its inputs, and it says so', () => {
    const twins = viewOf({ requests: [two], workers: [gpus('w1', 2), gpus('w2', 2)] });
    for (const name of ['w1', 'w2']) {
      twins.fleet.setHeld(name as WorkerId, [{ hash: 'x', bytes: 3 * 2 ** 30 }]);
      expect(previewPlacement(twins, two, 0, ['x'])).toMatchObject([
        { worker: name, reason: `there is room on ${name}, which has 3G of its inputs` },
      ]);
      twins.fleet.setHeld(name as WorkerId, []);
    }
    expect(previewPlacement(twins, two, 0, ['x'])[0]?.reason).not.toContain('inputs');
  });

  test('not where the budget does not allow it', () => {
    const poor = viewOf({
      workers: [gpus('w1', 2, dear)],
      accounts: [account('t', { microsLeft: 1_000_000 })],
    });
    expect(previewPlacement(poor, one, 0)).toMatchObject([
      { startsAtMs: null, reason: 'tenant t is at the limit of money: it needs 4.10, 1.00 left' },
    ]);
  });

  test('a prediction needs time limits', () => {
    expect(predictStart(view, { ...two, pool: 'default' }, 5000)).toEqual({
      atMs: HOUR_MS + 1000,
      worker: 'w1',
    });
    const endless = viewOf({
      requests: [one],
      workers: [gpus('w1', 1)],
      claims: [heldGpus(one, 'j0', 'w1')],
    });
    expect(predictStart(endless, one, 5000)).toBeNull();
    expect(predictStart(endless, wanting(0), 5000)).toMatchObject({ atMs: 5000 });
  });

  test('a gang when all its members fit on one network', () => {
    const gang = wantingGpus(1, { gangSize: 2, timeLimitMs: HOUR_MS, key: 'gang' });
    const apart = viewOf({
      requests: [gang, two, one],
      workers: [
        gpus('w1', 2, { network: 'a' }),
        gpus('w2', 1, { network: 'b' }),
        gpus('w3', 1, { network: 'a' }),
      ],
      claims: [
        heldGpus(two, 'j0', 'w1', 0, { sinceMs: 0 }),
        heldGpus(gang, 'j1', 'w3', 0, { sinceMs: 2000 }),
      ],
    });
    expect(predictStart(apart, gang, 5000)).toMatchObject({ atMs: HOUR_MS });
    expect(previewPlacement(apart, gang, 5000)).toMatchObject([{ startsAtMs: HOUR_MS }]);
  });
});
