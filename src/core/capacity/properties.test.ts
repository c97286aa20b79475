/** Random pools, machines and demands: what must hold of every plan. */
import type { DeviceRequest } from '../../model/resources.ts';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Constraint } from '../../model/placement.ts';
import { holdMs } from '../money.ts';
import type { PlacementRequest } from '../placement/request.ts';
import { gpus, wants, GIB } from '../placement/testFleet.ts';
import { FRESH_BACKOFF } from './backoff.ts';
import type { CapacityInstance, CapacityPlan, CapacityPool, Demand } from './capacity.ts';
import { planCapacity } from './plan.ts';
import { standingOf } from './suits.ts';
import { carriedOut, HOUR, machine, MINUTE, NOW, spendLeft, testDemand } from './testCapacity.ts';
import { testInstance, testPool } from './testCapacity.ts';

const QUANTUM_MICROS = 20_000;

const sizes = fc.constantFrom(
  machine(),
  machine(2),
  machine(8, { cpuMillis: 64_000 }),
  machine(4, { devices: gpus(4, 'A100', 40 * GIB) }),
);

const instance: fc.Arbitrary<Partial<CapacityInstance>> = fc.record({
  state: fc.constantFrom('coming', 'coming', 'joined', 'leaving'),
  queued: fc.boolean(),
  resources: sizes,
  runAs: fc.constantFrom('', '', '', 'lab/ann'),
  idleSinceMs: fc.constantFrom(null, NOW - MINUTE, NOW - HOUR),
  paidUntilMs: fc.constantFrom(null, NOW + 1000, NOW + HOUR),
  endsAtMs: fc.constantFrom(null, null, NOW + 2 * HOUR, NOW + MINUTE),
});

/** Everything of a pool but its limits. */
const nature = fc.record({
  mode: fc.constantFrom('agents', 'agents', 'job'),
  size: fc.oneof({ weight: 4, arbitrary: sizes }, { weight: 1, arbitrary: fc.constant(null) }),
  largest: fc.oneof(sizes, fc.constant(null)),
  attributes: fc.constantFrom<Record<string, string>>({}, { zone: 'a' }, { rack: '1' }),
  network: fc.constantFrom('', '', null),
  terms: fc.record({
    tenants: fc.constantFrom<string[]>([], [], ['x']),
    users: fc.constant<string[]>([]),
    interruptibleOnly: fc.constantFrom(false, false, true),
    marketplace: fc.boolean(),
  }),
  batches: fc.boolean(),
  gangs: fc.boolean(),
  longestMs: fc.constantFrom(0, 0, HOUR / 2, 3 * HOUR),
  perUser: fc.constantFrom(false, false, true),
  cpuHourMicros: fc.constantFrom(0, 1, 5),
  deviceHourMicros: fc.constantFrom(0, 3),
  quantumMicros: fc.constantFrom(0, QUANTUM_MICROS),
  instances: fc.array(instance, { maxLength: 4 }),
});

const limits = fc
  .record({
    min: fc.constantFrom(0, 0, 1),
    max: fc.integer({ min: 1, max: 8 }),
    maxPending: fc.integer({ min: 1, max: 5 }),
    window: fc.constantFrom(1, 2, 10_000),
    notBeforeMs: fc.constantFrom(0, 0, 0, NOW + 5000),
    spend: fc.constantFrom(null, spendLeft(0), spendLeft(0.01), spendLeft(3), spendLeft(9)),
  })
  .map(({ window, notBeforeMs, ...more }) => ({
    ...more,
    backoff: { ...FRESH_BACKOFF, window, notBeforeMs, error: 'no' },
  }));

const AMPLE = { max: 10_000, maxPending: 10_000, spend: null, backoff: FRESH_BACKOFF };

/** Instances are named in the order in which they appear, over all pools. */
function poolsWith(more: fc.Arbitrary<Partial<CapacityPool>>): fc.Arbitrary<CapacityPool[]> {
  const each = fc.tuple(nature, more);
  return fc.array(each, { minLength: 1, maxLength: 4 }).map((all) =>
    all.map(([{ instances, ...own }, of], place) => {
      const named = instances.map((one, at) => testInstance(`i${at}${place}`, one));
      return testPool('dcba'.charAt(place), { ...own, ...of, instances: named });
    }),
  );
}

const constraint: fc.Arbitrary<Constraint> = fc.record({
  attribute: fc.constantFrom('zone', 'pool'),
  operator: fc.constantFrom('EQ', 'NE'),
  values: fc.constantFrom(['a'], ['b']),
  preferred: fc.boolean(),
});

const demand: fc.Arbitrary<Demand> = fc
  .record({
    units: fc.integer({ min: 1, max: 12 }),
    gangSize: fc.constantFrom(1, 1, 1, 2, 3),
    request: fc.record({
      tenant: fc.constantFrom('lab', 'x'),
      user: fc.constantFrom('ann', 'bob'),
      pool: fc.constantFrom('', '', '', 'a'),
      timeLimitMs: fc.constantFrom(0, 10 * MINUTE),
      neededMs: fc.constantFrom(0, 10 * MINUTE, 2 * HOUR),
      resources: fc
        .record({
          cpuMillis: fc.constantFrom(500, 3000, 8000, 20_000),
          ports: fc.constantFrom(0, 0, 2),
          device: fc.constantFrom<Partial<DeviceRequest> | null>(
            ...[null, null, {}, { count: 2 }, { share: 300 }, { models: ['h1'] }],
          ),
        })
        .map(({ device, ...amounts }) => wants(amounts, device)),
    }),
    placement: fc.record({
      constraints: fc.oneof(
        { weight: 3, arbitrary: fc.constant<Constraint[]>([]) },
        { weight: 1, arbitrary: fc.array(constraint, { maxLength: 2 }) },
      ),
      exclusive: fc.constantFrom(false, false, false, true),
      antiAffinity: fc.constantFrom('', '', '', 'db'),
      locality: fc.constantFrom('', '', 'rack'),
      interruptible: fc.boolean(),
      trust: fc.constantFrom('normal' as const, 'restricted' as const),
    }),
    affordable: fc.constantFrom(new Map<string, number>(), new Map([['a', 2]])),
    sinceMs: fc.constantFrom(NOW - 1000, NOW - 2 * HOUR),
  })
  .map(({ units, gangSize, request, placement, affordable, sinceMs }) =>
    testDemand(units * gangSize, { ...request, gangSize }, placement, { affordable, sinceMs }),
  );

const demands = fc.array(demand, { maxLength: 12 });

function check(
  more: fc.Arbitrary<Partial<CapacityPool>>,
  holds: (pools: CapacityPool[], all: Demand[], plan: CapacityPlan) => void,
): void {
  fc.assert(
    fc.property(poolsWith(more), demands, (pools, all) => {
      holds(pools, all, planCapacity(pools, all, NOW));
    }),
    { numRuns: 1000 },
  );
}

test('never above max, maxPending, the window, or what is left to spend', () => {
  check(limits, (pools, _, plan) => {
    for (const pool of pools) {
      const own = plan.launches.filter(({ pool: of }) => of === pool.name);
      const launched = own.reduce((sum, { count }) => sum + count, 0);
      if (launched === 0) continue;
      const coming = pool.instances.filter(({ state }) => state === 'coming').length;
      expect(pool.backoff.notBeforeMs).toBeLessThanOrEqual(NOW);
      expect(pool.instances.length + launched).toBeLessThanOrEqual(pool.max);
      expect(coming + launched).toBeLessThanOrEqual(pool.maxPending);
      const apart = coming > 0 || own.length > 1;
      if (apart && pool.mode === 'job') {
        expect(coming + launched).toBeLessThanOrEqual(Math.max(1, pool.backoff.window));
      }
      const hours = own.map(({ count, timeLimitMs }) => {
        return count * pool.quantumMicros * Math.ceil(holdMs(timeLimitMs) / pool.quantumMs);
      });
      const reserved = hours.reduce((sum, each) => sum + each, 0);
      if (pool.spend) expect(reserved).toBeLessThanOrEqual(pool.spend.leftMicros);
    }
  });
});

test('a plan that was carried out launches nothing more when it is made again', () => {
  check(limits, (pools, all, plan) => {
    const again = planCapacity(carriedOut(pools, plan), all, NOW);
    if (plan.releases.length === 0) expect(again.launches).toEqual([]);
    const covered = (of: CapacityPlan) => of.coming.map(({ classKey, tasks }) => [classKey, tasks]);
    if (plan.releases.length === 0) expect(covered(again)).toEqual(covered(plan));
    const made = again.releases.filter(({ instance: id }) => id.startsWith('z'));
    expect(made).toEqual([]);
  });
});

test('with ample limits all is covered that some pool could take, and only that', () => {
  check(fc.constant(AMPLE), (pools, all, plan) => {
    const unmet = new Set(plan.unmet.map(({ classKey }) => classKey));
    for (const { request, affordable } of all) {
      if (affordable.size > 0) continue;
      const could = pools.some((pool) => !standingOf(pool, request).refusal);
      if (could) expect([request.key, unmet.has(request.key)]).toEqual([request.key, false]);
    }
    for (const { reasons } of plan.unmet) {
      for (const { code } of reasons) expect(['UNSUITABLE', 'QUOTA']).toContain(code);
    }
  });
});

test('every demand is told of in full: what comes, and why the rest does not', () => {
  check(limits, (pools, all, plan) => {
    const told = new Map(all.map(({ request }) => [request.key, 0]));
    for (const { classKey, tasks } of [...plan.coming, ...plan.unmet]) {
      expect(tasks).toBeGreaterThan(0);
      told.set(classKey, (told.get(classKey) as number) + tasks);
    }
    for (const { request, waiting } of all) expect(told.get(request.key)).toBe(waiting);
    const names = new Set(pools.map(({ name }) => name));
    for (const { classKey, reasons } of plan.unmet) {
      const { request } = all.find((each) => each.request.key === classKey) as Demand;
      const asked: PlacementRequest['pool'] = request.pool;
      if (asked === '' || names.has(asked)) expect(reasons.length).toBeGreaterThan(0);
    }
  });
});

test('the order in which pools and instances are told does not matter', () => {
  check(limits, (pools, all, plan) => {
    const turned = pools.toReversed().map((pool) => ({
      ...pool,
      instances: pool.instances.toReversed(),
    }));
    const other = planCapacity(turned, all, NOW);
    const sorted = (of: CapacityPlan) => ({
      ...of,
      releases: of.releases.toSorted((a, b) => (a.instance < b.instance ? -1 : 1)),
      unwanted: of.unwanted.toSorted(),
    });
    expect(sorted(other)).toEqual(sorted(plan));
  });
});

test('without demand a pool shrinks to its least, and to nothing where that is zero', () => {
  check(limits, (pools) => {
    const resting = pools.map((pool) => ({
      ...pool,
      instances: pool.instances.map((each) => ({
        ...each,
        queued: true,
        state: each.state === 'leaving' ? ('leaving' as const) : ('joined' as const),
        idleSinceMs: NOW - HOUR,
      })),
    }));
    const plan = planCapacity(resting, [], NOW);
    for (const pool of resting) {
      const gone = plan.releases.filter((each) => each.pool === pool.name).length;
      const there = pool.instances.filter(({ state }) => state !== 'leaving').length;
      const least = Math.min(there, pool.min);
      if (pool.spend) expect(there - gone).toBeLessThanOrEqual(least);
      else expect(there - gone).toBe(least);
    }
  });
});
