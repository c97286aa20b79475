/** What is checked quickly is accepted exactly as the schema accepts it, or left to the schema. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JOB_LIMITS, jobSpec, submitBatch } from './jobSpec.ts';
import { quickBatch, quickSpec } from './quickSpecs.ts';

test('a sweep is taken without the schema, and means the same', () => {
  const jobs = [0, 1, 2].map((seed) => ({
    name: `sweep-${seed}`,
    command: ['train', `--seed=${seed}`],
    env: { SEED: String(seed) },
    labels: { 'any key': 'at all' },
    resources: { device: { models: ['A100'] } },
    rules: { outputs: ['out/*'] },
  }));
  expect(quickBatch({ jobs })).toEqual(submitBatch.parse({ jobs }));
  expect(quickSpec({ command: ['true'] })).toEqual(jobSpec.parse({ command: ['true'] }));
});

test.each([
  null,
  [],
  'text',
  {},
  { command: [] },
  { command: [''] },
  { command: ['true', 1] },
  { command: ['a\0b'] },
  { command: ['true'], name: null },
  { command: ['true'], name: 'x'.repeat(JOB_LIMITS.nameLength + 1) },
  { command: ['true'], name: 'half a pair: \ud800' },
  { command: ['true'], env: null },
  { command: ['true'], env: { '1X': '' } },
  { command: ['true'], env: { X: 1 } },
  { command: ['true'], labels: { '': 'x' } },
  { command: ['true'], labels: ['x'] },
  { command: ['true'], comand: ['true'] },
  { command: ['true'], retries: -1 },
  { command: ['true'], resources: { device: { share: 500, count: 2 } } },
  JSON.parse('{"command":["true"],"__proto__":{"retries":1}}'),
  { command: ['x'.repeat(JOB_LIMITS.commandBytes), 'y'] },
])('wrong job %# is left to the schema', (job) => {
  expect(jobSpec.safeParse(job).success).toBe(false);
  expect(quickSpec(job)).toBeNull();
  expect(quickBatch({ jobs: [{ command: ['true'] }, job] })).toBeNull();
});

test('a batch of the wrong size or form is left to the schema', () => {
  const job = { command: ['true'] };
  const tooMany = Array.from({ length: JOB_LIMITS.batchJobs + 1 }, () => job);
  for (const body of [null, [job], {}, { jobs: [] }, { jobs: [job], more: 1 }, { jobs: tooMany }]) {
    expect(submitBatch.safeParse(body).success).toBe(false);
    expect(quickBatch(body)).toBeNull();
  }
});

const value = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 5 }),
  fc.constantFrom('true', 0, 1, -1, 2.5, null, true, [], {}, 'X', 'batch', 'interactive'),
);
const record = fc.dictionary(fc.constantFrom('A', '_b', '1c', 'a b', '', 'é'), value);
const field = fc.oneof(value, record, fc.array(value, { maxLength: 3 }));
const right = fc.record(
  {
    command: fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 3 }),
    name: fc.string({ unit: 'grapheme' }),
    env: fc.dictionary(fc.constantFrom('A', '_b', 'C9'), fc.string()),
    labels: fc.dictionary(fc.string({ minLength: 1 }), fc.string()),
    retries: fc.integer({ min: 0, max: 2 }),
    priority: fc.constantFrom('batch', 'interactive'),
    resources: fc.record({ cpuMillis: fc.integer({ min: 1, max: 2 }) }),
  },
  { requiredKeys: ['command'] },
);
const names = fc.constantFrom('command', 'name', 'env', 'labels', 'retries', 'pool', 'unknown');
const wrong = fc.tuple(right, names, field).map(([job, name, one]) => ({ ...job, [name]: one }));
const job = fc.oneof({ weight: 4, arbitrary: right }, { weight: 1, arbitrary: wrong });

test('whatever comes is never taken but as the schema takes it', () => {
  let taken = 0;
  fc.assert(
    fc.property(fc.array(job, { minLength: 1, maxLength: 3 }), (jobs) => {
      const quick = quickBatch({ jobs });
      const whole = submitBatch.safeParse({ jobs });
      // Both ways: what the schema takes is also taken quickly.
      expect(quick).toEqual(whole.success ? whole.data : null);
      if (quick) taken++;
    }),
    { numRuns: 2000 },
  );
  expect(taken).toBeGreaterThan(500);
});
