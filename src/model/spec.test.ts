/** Specs on their way: only what differs travels, and all of it comes back. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jobSpec } from '../protocol/jobSpec.ts';
import type { JobId } from './ids.ts';
import { PRIORITIES, type JobSpec } from './job.ts';
import { CONSTRAINT_OPERATORS } from './placement.ts';
import { packSpec, packSpecs, unpackSpec, unpackSpecs } from './spec.ts';

const plain = jobSpec.parse({ command: ['true'] });

test('what has only defaults is its command', () => {
  expect(packSpec(plain)).toBe('{"command":["true"]}');
  expect(unpackSpec(packSpec(plain))).toEqual(plain);
});

test('the defaults here are those of a submission', () => {
  expect(unpackSpec('{"command":["true"]}')).toEqual(plain);
});

test('a row of an earlier version means what it meant', () => {
  expect(unpackSpec('{"command":["a"],"retries":2,"resources":{"device":{}}}')).toMatchObject({
    retries: 2,
    resources: {
      cpuMillis: 1000,
      device: { kind: 'gpu', count: 1, share: 1000, models: [], memoryBytes: 0 },
    },
  });
});

test('what many specs share cannot be changed by one of them', () => {
  const [a, b] = unpackSpecs(packSpecs([plain, plain]));
  expect(() => Object.assign(a!.env, { X: '1' })).toThrow();
  expect(() => Object.assign(a!.resources, { ports: 1 })).toThrow();
  expect(b).toEqual(plain);
});

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const texts = fc.dictionary(text, text, { maxKeys: 3 });
const count = fc.nat(100);
const specs: fc.Arbitrary<JobSpec> = fc.record({
  name: text,
  command: fc.array(text, { minLength: 1, maxLength: 4 }),
  env: texts,
  workdir: text,
  resources: fc.record({
    cpuMillis: fc.constantFrom(1000, 1, 64_000),
    memoryBytes: fc.constantFrom(0, 2 ** 40),
    ports: fc.nat(3),
    device: fc.option(
      fc.record({
        kind: fc.constantFrom('gpu', 'tpu', 'npu'),
        count: fc.integer({ min: 1, max: 8 }),
        share: fc.constantFrom(1000, 500),
        models: fc.array(text, { maxLength: 2 }),
        memoryBytes: count,
      }),
    ),
  }),
  shape: fc.oneof(
    fc.constant({ kind: 'single' as const }),
    fc.record({ kind: fc.constant('array' as const), indices: fc.array(count), limit: count }),
    fc.record({ kind: fc.constant('gang' as const), size: count }),
  ),
  pool: text,
  priority: fc.constantFrom(...PRIORITIES),
  retries: count,
  maxInterruptions: count,
  timeLimitMs: count,
  startWithinMs: count,
  graceMs: fc.constantFrom(0, 10_000, 5),
  attemptLeaseMs: count,
  maxCostMicros: count,
  after: fc.array(
    fc.record({
      job: text.map((id) => id as JobId),
      when: fc.constantFrom('ok' as const, 'failed' as const, 'any' as const),
    }),
  ),
  placement: fc.record({
    constraints: fc.array(
      fc.record({
        attribute: text,
        operator: fc.constantFrom(...CONSTRAINT_OPERATORS),
        values: fc.array(text, { maxLength: 2 }),
        preferred: fc.boolean(),
      }),
      { maxLength: 2 },
    ),
    arrangement: fc.constantFrom('pack' as const, 'spread' as const),
    exclusive: fc.boolean(),
    antiAffinity: text,
    locality: text,
    interruptible: fc.boolean(),
    trust: fc.constantFrom('normal' as const, 'restricted' as const),
  }),
  labels: texts,
});

test('any spec comes back as it was', () => {
  fc.assert(
    fc.property(fc.array(specs, { maxLength: 4 }), (all) => {
      const unpacked = unpackSpecs(packSpecs(all));
      expect(unpacked).toEqual(all);
      for (const spec of all) expect(unpackSpec(packSpec(spec))).toEqual(spec);
      // What came from another thread becomes the same row, also when asked again.
      for (const _ of [1, 2]) expect(unpacked.map(packSpec)).toEqual(all.map(packSpec));
    }),
  );
});
