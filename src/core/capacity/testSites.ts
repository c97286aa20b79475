/** For tests: random pools with machines, and random demands. */
import fc from 'fast-check';
import type { Constraint } from '../../model/placement.ts';
import type { DeviceRequest } from '../../model/resources.ts';
import { gpus, wants, GIB } from '../placement/testFleet.ts';
import { FRESH_BACKOFF } from './backoff.ts';
import type { CapacityInstance, CapacityPool, Demand } from './capacity.ts';
import { HOUR, machine, MINUTE, NOW, spendLeft, testDemand } from './testCapacity.ts';
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

export const limits = fc
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

export const AMPLE = { max: 10_000, maxPending: 10_000, spend: null, backoff: FRESH_BACKOFF };

/** Instances are named in the order in which they appear, over all pools. */
export function poolsWith(more: fc.Arbitrary<Partial<CapacityPool>>): fc.Arbitrary<CapacityPool[]> {
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

export const demands = fc.array(demand, { maxLength: 12 });
