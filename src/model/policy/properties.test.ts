/** What holds for every policy and every job. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jobSpec } from '../../protocol/jobSpec.ts';
import type { JobSpec } from '../job.ts';
import type { Scope } from '../token.ts';
import { evaluatorFor } from './evaluate.ts';
import type { Who } from './match.ts';
import { applyPolicy } from './refusal.ts';
import { policySchema, type Policy } from './schema.ts';

/** Few words, so that policies and jobs have to do with each other. */
const word = fc.constantFrom('a', 'b', 'lab');
const pattern = fc.constantFrom('a', 'b', '*', 'l*b', '*a');
const words = fc.uniqueArray(word, { minLength: 1, maxLength: 3 });
const patterns = fc.uniqueArray(pattern, { minLength: 1, maxLength: 3 });
const imagePatterns = fc.uniqueArray(fc.constantFrom('*', 'docker.io/*', '*:1'), { minLength: 1 });
const few = fc.nat(4);
const duration = fc.constantFrom('1m', '1h', '1d');
const priority = fc.constantFrom('production', 'interactive', 'batch');
const trust = fc.constantFrom('normal', 'restricted');
const some = <Values>(fields: { [Key in keyof Values]: fc.Arbitrary<Values[Key]> }) =>
  fc.record(fields, { requiredKeys: [] });
const nonEmpty = <Fields extends object>(arbitrary: fc.Arbitrary<Fields>) =>
  arbitrary.filter((value) => Object.keys(value).length > 0);
const lists = (list: fc.Arbitrary<string[]>) => some({ allow: list, deny: list });

const who: fc.Arbitrary<Who> = fc.record({
  tenant: word,
  user: word,
  scopes: fc.uniqueArray(fc.constantFrom<Scope>('jobs:read', 'jobs:manage', 'fleet:read')),
});
const whoMatch = { tenants: patterns, users: patterns, roles: fc.constant(['viewer']) };
const labels = (names: fc.Arbitrary<string>) => fc.dictionary(names, pattern, { maxKeys: 2 });
const match = some({
  ...whoMatch,
  labels: labels(word),
  pools: patterns,
  priorities: fc.uniqueArray(priority, { minLength: 1 }),
  leastDevices: fc.integer({ min: 1, max: 4 }),
  trusts: fc.uniqueArray(trust, { minLength: 1 }),
  images: imagePatterns,
});
const defaults = fc
  .record({
    match: some({ ...whoMatch, labels: labels(fc.constant('matched')) }),
    fills: nonEmpty(
      some({
        timeLimit: duration,
        startWithin: duration,
        priority,
        pool: word,
        retries: few,
        trust,
        image: word,
        env: fc.dictionary(fc.constantFrom('A', 'B'), word),
        labels: fc.dictionary(word, word),
      }),
    ),
  })
  .map((one) => ({ match: one.match, ...one.fills }));
const demands = nonEmpty(
  some({
    longestTimeLimit: duration,
    timeLimitRequired: fc.constant(true),
    images: lists(imagePatterns),
    pools: lists(words),
    trusts: fc.uniqueArray(trust, { minLength: 1 }),
    priorities: fc.uniqueArray(priority, { minLength: 1 }),
    mostDevices: few,
    mostArrayTasks: few,
    mostRetries: few,
    secrets: lists(patterns),
    labels: fc.dictionary(word, patterns, { maxKeys: 2 }),
  }),
);
const rules = fc
  .array(fc.record({ match, unless: fc.option(nonEmpty(match)), require: demands }), {
    maxLength: 4,
  })
  .map((all) =>
    all.map(({ unless, ...one }, at) => ({ name: `r${at}`, ...one, ...(unless && { unless }) })),
  );
const policy: fc.Arbitrary<Policy> = fc
  .record({ defaults: fc.array(defaults, { maxLength: 4 }), rules })
  .map((written) => policySchema.parse(written));

const constraint = fc.record({
  attribute: fc.constantFrom('pool', 'rack'),
  operator: fc.constantFrom('EQ' as const, 'NE' as const),
  values: word.map((value) => [value]),
  preferred: fc.boolean(),
});
const spec: fc.Arbitrary<JobSpec> = some({
  timeLimitMs: fc.constantFrom(0, 60_000, 1e9),
  retries: few,
  priority,
  pool: fc.constantFrom('', 'a', 'b'),
  labels: fc.dictionary(fc.constantFrom('a', 'matched'), word),
  env: fc.dictionary(fc.constantFrom('A', 'B'), word),
  placement: some({ trust, constraints: fc.array(constraint, { maxLength: 2 }) }),
  environment: some({ image: fc.constantFrom('', 'a', 'b:1') }),
  secrets: fc.uniqueArray(word).map((names) => names.map((name) => ({ name }))),
  resources: fc.record({ device: fc.record({ count: fc.integer({ min: 1, max: 4 }) }) }),
  shape: fc.constantFrom({ kind: 'single' }, { kind: 'gang', size: 2 }),
}).map((fields) => jobSpec.parse({ command: ['true'], ...fields }));

const pools = fc.option(fc.uniqueArray(word).map((names) => new Set(names)));

test('what was filled in and narrowed once is not changed again', () => {
  fc.assert(
    fc.property(policy, who, spec, pools, (site, caller, job, known) => {
      const evaluator = evaluatorFor(site, caller, known);
      if (!evaluator) return;
      const once = evaluator.explain(job).spec;
      const twice = evaluator.explain(once);
      expect(twice.spec).toEqual(once);
      expect(twice.filled).toEqual([]);
      // What comes out could have been submitted so.
      expect(jobSpec.parse(once)).toEqual(once);
    }),
    { numRuns: 500 },
  );
});

test('the order of rules changes neither the refusal nor the job', () => {
  const shuffled = policy.chain((site) =>
    fc
      .shuffledSubarray(site.rules, { minLength: site.rules.length })
      .map((order) => [site, { ...site, rules: order }] as const),
  );
  fc.assert(
    fc.property(shuffled, who, spec, pools, ([site, other], caller, job, known) => {
      const judge = (one: Policy) => evaluatorFor(one, caller, known)?.judge(job);
      expect(judge(other)).toEqual(judge(site));
    }),
    { numRuns: 500 },
  );
});

test('jobs of one call are judged as each alone', () => {
  fc.assert(
    fc.property(
      policy,
      who,
      fc.array(spec, { minLength: 1, maxLength: 3 }),
      (site, caller, few) => {
        const jobs = few.flatMap((one) => [
          one,
          one,
          { ...one, name: 'other', command: ['false'], labels: { ...one.labels } },
        ]);
        const evaluator = evaluatorFor(site, caller, null);
        if (!evaluator) return;
        for (const job of jobs) {
          const { spec: whole, violations } = evaluator.explain(job);
          expect(evaluator.judge(job)).toEqual({ spec: whole, violations });
        }
        const allowed = jobs.filter((job) => evaluator.explain(job).violations.length === 0);
        const accepted = applyPolicy(site, caller, allowed, null);
        expect(accepted.map(({ name }) => name)).toEqual(allowed.map(({ name }) => name));
      },
    ),
  );
});
