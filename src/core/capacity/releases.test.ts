/** What is given back, when, and what is kept. */
import { describe, expect, test } from 'vitest';
import type { TaskId } from '../../model/ids.ts';
import { planCapacity } from './plan.ts';
import { RENEWAL_MARGIN_MS } from './releases.ts';
import { busy, HOUR, idle, machine, MICROS, MINUTE, NOW, spendLeft } from './testCapacity.ts';
import { testDemand, testInstance, testPool } from './testCapacity.ts';

function released(
  pool: ReturnType<typeof testPool>,
  demands: ReturnType<typeof testDemand>[] = [],
) {
  const { releases } = planCapacity([pool], demands, NOW);
  return releases.map(({ instance, reason }) => `${instance}: ${reason}`);
}

describe('idle machines', () => {
  const instances = [idle('i1', 5 * MINUTE), idle('i2', 12 * MINUTE), idle('i3', HOUR), busy('i4')];

  test('go after the timeout, those unused for longest first, down to min', () => {
    const pool = testPool('p', { instances });
    expect(released(pool)).toEqual(['i3: idle for 1 hour', 'i2: idle for 12 minutes']);
    expect(planCapacity([pool], [], NOW).nextAtMs).toBe(NOW + 5 * MINUTE);
    expect(released({ ...pool, min: 3 })).toEqual(['i3: idle for 1 hour']);
    expect(released({ ...pool, min: 4 })).toEqual([]);
  });

  test('stay while work that fits them waits, but not beside work they never get', () => {
    const pool = testPool('p', { instances: [idle('i1', 10 * MINUTE)] });
    const plan = planCapacity([pool], [testDemand(1)], NOW);
    expect(plan).toMatchObject({ launches: [], releases: [], coming: [{ instances: ['i1'] }] });
    expect(plan.nextAtMs).toBe(NOW + 9 * MINUTE);
    const old = testDemand(1, {}, {}, { sinceMs: NOW - HOUR });
    const later = planCapacity([pool], [old], NOW);
    expect(later.launches).toMatchObject([{ count: 1 }]);
    expect(later.releases).toMatchObject([{ instance: 'i1' }]);
    const gang = testDemand(2, { gangSize: 2 }, {}, { sinceMs: NOW - HOUR });
    expect(planCapacity([pool], [gang], NOW)).toMatchObject({
      launches: [{ count: 1 }],
      releases: [{ instance: 'i1' }],
    });
  });

  test('a machine that ends soon is not for work that needs longer', () => {
    const ending = idle('i1', MINUTE, { endsAtMs: NOW + 5 * MINUTE });
    const plan = planCapacity([testPool('p', { instances: [ending] })], [testDemand(1)], NOW);
    expect(plan.launches).toMatchObject([{ count: 1 }]);
  });
});

describe('machines on their way', () => {
  test('sized for work that is gone: at once, and when it has ended', () => {
    const tasks = ['t.0'] as TaskId[];
    const instances = [
      testInstance('i1', { tasks, waiting: 0, queued: false }),
      testInstance('i2', { tasks, waiting: 1 }),
      busy('i3', { tasks, waiting: 0 }),
      idle('i4', 1, { tasks, waiting: 0 }),
      testInstance('i5', { tasks, waiting: 0, state: 'leaving' }),
    ];
    expect(released(testPool('p', { mode: 'job', instances }))).toEqual([
      'i1: what it was sized for no longer waits',
      'i4: what it was sized for has ended',
    ]);
  });

  test('that nothing wants: only from the queue, and after the timeout', () => {
    const unwantedSince = (ms: number) => ({ idleSinceMs: NOW - ms });
    const instances = [
      testInstance('i1', unwantedSince(HOUR)),
      testInstance('i2', unwantedSince(HOUR)),
      testInstance('i3', unwantedSince(MINUTE)),
      testInstance('i4', { ...unwantedSince(HOUR), queued: false }),
      testInstance('i5'),
    ];
    const pool = testPool('p', { instances });
    const plan = planCapacity([pool], [testDemand(8)], NOW);
    expect(plan.unwanted).toEqual(['i2', 'i3', 'i4', 'i5']);
    expect(plan.releases).toEqual([
      { pool: 'p', instance: 'i2', reason: 'not wanted for 1 hour', unpaid: false },
    ]);
    expect(plan.nextAtMs).toBe(NOW + 9 * MINUTE);
    expect(released({ ...pool, min: 4 })).toEqual(['i2: not wanted for 1 hour']);
  });
});

describe('the limit of spend', () => {
  const paid = { paidUntilMs: NOW + 10_000, resources: machine() };
  const instances = [
    busy('i1', paid),
    idle('i2', MINUTE, paid),
    busy('i3', paid),
    testInstance('i4'),
  ];
  const pool = testPool('p', { instances, quantumMicros: MICROS, spend: spendLeft(4) });

  test('as long as it pays the next quantum of all, all stay', () => {
    expect(released(pool)).toEqual([]);
  });

  test('idle ones go first, then the newest', () => {
    const words = '9.00 of 12.00 a day are spent: the next 1.00 would be more';
    expect(released({ ...pool, spend: spendLeft(3) })).toEqual([`i2: ${words}`]);
    const gone = released({ ...pool, spend: spendLeft(1) }).map((each) => each.slice(0, 2));
    expect(gone).toEqual(['i3', 'i4', 'i2']);
    expect(released({ ...pool, spend: spendLeft(-1) })).toHaveLength(4);
  });

  test('what is paid for is used up first', () => {
    const longer = [busy('i1', { paidUntilMs: NOW + HOUR })];
    const plan = planCapacity([{ ...pool, instances: longer, spend: spendLeft(0) }], [], NOW);
    expect(plan.releases).toEqual([]);
    expect(plan.nextAtMs).toBe(NOW + HOUR - RENEWAL_MARGIN_MS);
  });
});
