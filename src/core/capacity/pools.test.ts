/** Which pool serves a demand, within which limits, and what is said where none does. */
import { describe, expect, test } from 'vitest';
import type { Constraint } from '../../model/placement.ts';
import { gpus, wants, GIB } from '../placement/testFleet.ts';
import { failed, FRESH_BACKOFF } from './backoff.ts';
import type { CapacityPool } from './capacity.ts';
import { planCapacity } from './plan.ts';
import { busy, HOUR, launchedIn, machine, MICROS, MINUTE, NOW } from './testCapacity.ts';
import { sentences, spendLeft, testDemand, testInstance, testPool } from './testCapacity.ts';

const ERROR = 'sbatch: error: invalid partition';

function broken(pool: CapacityPool): CapacityPool {
  const failure = { nowMs: NOW, error: ERROR, configuration: false, retryAfterMs: 0 };
  return { ...pool, backoff: failed(pool.backoff, failure, pool) };
}

function zone(value: string, preferred = false): Constraint {
  return { attribute: 'zone', operator: 'EQ', values: [value], preferred };
}

describe('which pool', () => {
  const dear = testPool('a-dear', { cpuHourMicros: 5 * MICROS });
  const cheap = testPool('z-cheap', { cpuHourMicros: MICROS });

  test('the cheapest for what is asked for, then by name', () => {
    expect(launchedIn(planCapacity([dear, cheap], [testDemand(1)], NOW))).toEqual({ 'z-cheap': 1 });
    const equal = [testPool('b'), testPool('a')];
    expect(launchedIn(planCapacity(equal, [testDemand(1)], NOW))).toEqual({ a: 1 });
  });

  test('what is preferred counts before the price, as it does with workers', () => {
    const near = { ...dear, attributes: { zone: 'here' } };
    const demand = testDemand(1, {}, { constraints: [zone('here', true)] });
    expect(launchedIn(planCapacity([near, cheap], [demand], NOW))).toEqual({ 'a-dear': 1 });
  });

  test('one that is full or holds back is passed over', () => {
    const full = { ...cheap, max: 1, instances: [busy('i1')] };
    expect(launchedIn(planCapacity([dear, full], [testDemand(1)], NOW))).toEqual({ 'a-dear': 1 });
    const plan = planCapacity([dear, broken(cheap)], [testDemand(1)], NOW);
    expect(launchedIn(plan)).toEqual({ 'a-dear': 1 });
  });

  test('one that is busy launching is waited for, but for another that costs no more', () => {
    const pending = { ...cheap, maxPending: 1, instances: [testInstance('i1', { workers: 0 })] };
    const plan = planCapacity([dear, pending], [testDemand(1)], NOW);
    expect(plan.launches).toEqual([]);
    expect(sentences(plan)).toEqual(['pool z-cheap: 1 of at most 1 are on their way']);
    const twin = { ...cheap, name: 'z-twin' };
    expect(launchedIn(planCapacity([dear, pending, twin], [testDemand(1)], NOW))).toEqual({
      'z-twin': 1,
    });
  });

  test('never one that could not take it, and it says why', () => {
    const gpu = wants({}, { count: 2, models: ['h100'] });
    const cases: [Partial<CapacityPool>, ReturnType<typeof testDemand>, string][] = [
      [{}, testDemand(1, { resources: gpu }), 'its machines have too few devices that match'],
      [{}, testDemand(1, { resources: wants({ cpuMillis: 9000 }) }), 'too few CPUs'],
      [{}, testDemand(1, { resources: wants({ memoryBytes: 65 * GIB }) }), 'too little memory'],
      [
        { size: machine(2, { devices: gpus(2, 'A100') }) },
        testDemand(1, { resources: gpu }),
        'too',
      ],
      [{ mode: 'job', largest: machine(1) }, testDemand(1, { resources: gpu }), 'too few devices'],
      [{}, testDemand(1, {}, { constraints: [zone('x')] }), 'not known to have zone = x'],
      [
        { terms: { tenants: ['x'], users: [], interruptibleOnly: true, marketplace: true } },
        testDemand(1, {}, { trust: 'restricted' }),
        '(--spot); they are machines of strangers and the work is restricted; they are not for',
      ],
      [{ longestMs: HOUR / 2 }, testDemand(1), 'live for 30 minutes, and it is taken to need 1 h'],
      [{ longestMs: HOUR }, testDemand(1, { neededMs: 2 * HOUR }), 'need 2 hours'],
      [{ network: null }, testDemand(2, { gangSize: 2 }), 'not known to reach each other'],
      [{}, testDemand(2, { gangSize: 2 }, { locality: 'rack' }), 'known to share one rack'],
      [{ mode: 'job', gangs: false }, testDemand(2, { gangSize: 2 }), 'and this is a gang'],
    ];
    for (const [more, demand, words] of cases) {
      const plan = planCapacity([testPool('p', more)], [demand], NOW);
      expect(plan.launches).toEqual([]);
      expect(sentences(plan)).toHaveLength(1);
      expect(sentences(plan)[0]).toContain(words);
      expect(sentences(plan)[0]).toMatch(/^pool p: /);
    }
  });

  test('the one it asks for, and nothing is said of others', () => {
    const plan = planCapacity([dear, cheap], [testDemand(1, { pool: 'a-dear' })], NOW);
    expect(launchedIn(plan)).toEqual({ 'a-dear': 1 });
    const none = planCapacity([dear, cheap], [testDemand(1, { pool: 'own' })], NOW);
    expect(none.unmet).toMatchObject([{ tasks: 1, reasons: [] }]);
  });

  test('short work, or work that may be cut, goes where machines end', () => {
    const short = testPool('short', { longestMs: HOUR / 2 });
    const demand = testDemand(1, { neededMs: 10 * MINUTE, timeLimitMs: 5 * HOUR });
    expect(launchedIn(planCapacity([short], [demand], NOW))).toEqual({ short: 1 });
    const ends = testInstance('i1', { endsAtMs: NOW + 5 * MINUTE });
    const plan = planCapacity([{ ...short, instances: [ends] }], [demand], NOW);
    expect(launchedIn(plan)).toEqual({ short: 1 });
  });
});

describe('limits', () => {
  test('max, with what leaves counted', () => {
    const instances = [busy('i1'), busy('i2'), testInstance('i3', { state: 'leaving' })];
    const plan = planCapacity([testPool('gpu', { max: 4, instances })], [testDemand(80)], NOW);
    expect(launchedIn(plan)).toEqual({ gpu: 1 });
    expect(sentences(plan)).toEqual(['pool gpu: 4 of at most 4 instances']);
    expect(plan).toMatchObject({ coming: [{ tasks: 8 }], unmet: [{ tasks: 72 }] });
  });

  test('maxPending, and the window after failures', () => {
    const plan = planCapacity([testPool('gpu', { maxPending: 2 })], [testDemand(80)], NOW);
    expect(launchedIn(plan)).toEqual({ gpu: 2 });
    const backoff = { ...FRESH_BACKOFF, window: 3, error: ERROR };
    const careful = planCapacity([testPool('gpu', { backoff })], [testDemand(80)], NOW);
    expect(launchedIn(careful)).toEqual({ gpu: 3 });
    expect(sentences(careful)[0]).toContain(`3 are on their way, as many as it tries (3) after`);
  });

  test('cooldown and back-off end by themselves, and the plan knows when', () => {
    const cooling = testPool('gpu', { backoff: { ...FRESH_BACKOFF, lastLaunchAtMs: NOW - 4000 } });
    const plan = planCapacity([cooling], [testDemand(1)], NOW);
    expect(plan.unmet[0]?.reasons).toMatchObject([{ code: 'COOLDOWN', untilMs: NOW + 6000 }]);
    expect(plan.nextAtMs).toBe(NOW + 6000);
    expect(launchedIn(planCapacity([cooling], [testDemand(1)], NOW + 6000))).toEqual({ gpu: 1 });

    const held = planCapacity([broken(testPool('gpu'))], [testDemand(1)], NOW);
    expect(held.unmet[0]?.reasons).toEqual([
      {
        pool: 'gpu',
        code: 'BACKOFF',
        sentence: `pool gpu: holds back after: ${ERROR}`,
        untilMs: NOW + 10_000,
      },
    ]);
    expect(held.nextAtMs).toBe(NOW + 10_000);
    expect(planCapacity([broken(testPool('gpu', { min: 1 }))], [], NOW).nextAtMs).toBe(
      NOW + 10_000,
    );
  });

  test('spend: an hour of each, those that are there included', () => {
    const priced = { quantumMicros: 20_000, quantumMs: MINUTE };
    const pool = testPool('salad', { ...priced, spend: spendLeft(4), instances: [busy('i1')] });
    const plan = planCapacity([pool], [testDemand(80)], NOW);
    expect(launchedIn(plan)).toEqual({ salad: 2 });
    expect(sentences(plan)[0]).toBe(
      'pool salad: 8.00 of 12.00 a day are spent and 3.60 kept for those it has; ' +
        'it needs 1.20 more',
    );
    const none = planCapacity([{ ...pool, spend: spendLeft(0) }], [testDemand(1)], NOW);
    expect(none.unmet[0]?.reasons).toMatchObject([
      {
        code: 'SPEND',
        sentence: 'pool salad: 12.00 of 12.00 a day are spent',
        untilMs: NOW + 5 * HOUR,
      },
    ]);
  });

  test('a short job sets aside its own time only', () => {
    const priced = { quantumMicros: 20_000, quantumMs: MINUTE, spend: spendLeft(1.2) };
    const pool = testPool('salad', { ...priced, mode: 'job' });
    const demand = testDemand(9, { timeLimitMs: 10 * MINUTE });
    expect(launchedIn(planCapacity([pool], [demand], NOW))).toEqual({ salad: 4 });
  });

  test('what tenant and user can pay, by pool, with what comes for them counted', () => {
    const affordable = new Map([
      ['a', 3],
      ['b', 0],
    ]);
    const pools = [testPool('a', { instances: [testInstance('i1')] }), testPool('b')];
    const plan = planCapacity(pools, [testDemand(20, {}, {}, { affordable })], NOW);
    expect(plan.launches).toEqual([]);
    expect(plan.coming).toMatchObject([{ tasks: 3, instances: ['i1'] }]);
    expect(sentences(plan)).toEqual([
      'pool a: the limits of its tenant or user allow 3 more tasks there',
      'pool b: the limits of its tenant or user allow 0 more tasks there',
    ]);
    // Others that ask for the same are not held by it.
    const both = planCapacity(pools, [testDemand(4, {}, {}, { affordable }), testDemand(5)], NOW);
    expect(both.coming.map(({ tasks }) => tasks)).toEqual([3, 5]);
  });
});
