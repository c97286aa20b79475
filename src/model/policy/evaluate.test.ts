/** What defaults fill in, whom rules refuse and with which words. */
import { describe, expect, test } from 'vitest';
import { jobSpec, type SubmittedSpec } from '../../protocol/jobSpec.ts';
import type { JobSpec } from '../job.ts';
import type { Who } from './match.ts';
import { readPolicy } from './read.ts';
import { applyPolicy, refuseChange } from './refusal.ts';
import { ADA, BOB, BOSS, broken, explain, job, rule } from '../../../test/support/policies.ts';

describe('defaults', () => {
  const text = `
defaults:
  - match: { labels: { stage: draft } }
    timeLimit: 10m
    priority: interactive
  - match: { tenants: [guest-*] }
    pool: guests
    trust: restricted
    image: python:3.13
  - timeLimit: 4h
    retries: 2
    env: { A: site, B: site }
    labels: { site: berlin }
`;
  test('fill in what was not said; the first that fits decides', () => {
    const { spec, filled } = explain(text, job({ labels: { stage: 'draft' }, env: { A: 'mine' } }));
    expect(spec).toMatchObject({ timeLimitMs: 600_000, priority: 'interactive', retries: 2 });
    expect(spec.env).toEqual({ A: 'mine', B: 'site' });
    expect(spec.labels).toEqual({ stage: 'draft', site: 'berlin' });
    expect(filled).toContainEqual({ what: 'timeLimit', value: '10m', from: 1 });
    expect(filled).toContainEqual({ what: 'env.B', value: 'site', from: 3 });
    expect(explain(text, job()).spec).toMatchObject({ timeLimitMs: 4 * 3_600_000, pool: '' });
  });

  test('leave what was said', () => {
    const said = job({
      timeLimitMs: 5000,
      retries: 1,
      priority: 'production',
      env: { A: '1', B: '2' },
      labels: { site: 'here', stage: 'draft' },
    });
    expect(explain(text, said).spec).toBe(said);
    const pinned = [{ attribute: 'pool', operator: 'EQ' as const, values: ['lab'] }];
    expect(explain(text, job({ placement: { constraints: pinned } }), BOB).spec.pool).toBe('');
    const locked = explain(text, job({ environment: { lock: 'uv.lock' } }), BOB).spec;
    expect(locked.environment?.image).toBe('');
  });

  test('give a guest pool, trust and image', () => {
    const { spec } = explain(text, job(), BOB);
    expect(spec).toMatchObject({ pool: 'guests', environment: { image: 'python:3.13' } });
    expect(spec.placement.trust).toBe('restricted');
    expect(jobSpec.parse(spec)).toEqual(spec);
  });
});

describe('pools', () => {
  const text = `
rules:
  - { name: a, require: { pools: { allow: [lab, spot, long] } } }
  - { name: b, require: { pools: { allow: [spot, long], deny: [long] } } }
`;
  test('a named one must be allowed', () => {
    expect(broken(text, { pool: 'spot' })).toEqual([]);
    expect(broken(text, { pool: 'x' })).toEqual([
      'the pool "x" is not allowed; allowed are lab, spot, long',
      'the pool "x" is not allowed; allowed are spot, long',
    ]);
    const constraints = [{ attribute: 'pool', operator: 'IN' as const, values: ['spot', 'long'] }];
    expect(broken(text, { placement: { constraints } })).toEqual([
      'the pool "long" is not allowed',
    ]);
  });

  test('what names none is kept to what all rules allow', () => {
    const { spec, violations } = explain(text, job());
    expect(violations).toEqual([]);
    const kept = { attribute: 'pool', operator: 'IN', values: ['spot'], preferred: false };
    expect(spec.placement.constraints).toEqual([kept]);
    expect(explain(text, spec).spec).toEqual(spec);
    const denied = explain(rule('{ pools: { deny: [b, a] } }'), job()).spec.placement.constraints;
    expect(denied.map(({ operator, values }) => [operator, ...values])).toEqual([
      ['NE', 'a'],
      ['NE', 'b'],
    ]);
    const none = `${text}  - { name: c, require: { pools: { deny: [spot] } } }\n`;
    const found = explain(none, job()).violations;
    expect(found.map((one) => one.rule)).toEqual(['a', 'b', 'c']);
  });
});

describe('rules of a pool', () => {
  const text = rule('{ labels: { project: ["*"] } }', '    match: { pools: [long, b] }\n');
  const pinned = (...values: string[]): Partial<SubmittedSpec> => ({
    placement: { constraints: [{ attribute: 'pool', operator: 'IN', values }] },
  });

  test('are for what names it; what names none is kept out of it', () => {
    expect(broken(text, { pool: 'lab' })).toEqual([]);
    expect(broken(text, { pool: 'long' })).toHaveLength(1);
    expect(broken(text, pinned('lab', 'long'))).toHaveLength(1);
    const { spec, violations, avoided } = explain(text, job());
    expect(violations).toEqual([]);
    expect(avoided).toMatchObject([{ rule: 'r', what: expect.stringContaining('is missing') }]);
    const kept = spec.placement.constraints.map(({ operator, values }) => [operator, ...values]);
    expect(kept).toEqual([
      ['NE', 'b'],
      ['NE', 'long'],
    ]);
    const labelled = explain(text, job({ labels: { project: 'x' } }));
    expect([labelled.violations, labelled.narrowed]).toEqual([[], []]);
  });

  test('refuse where there is no other pool', () => {
    expect(explain(text, job(), ADA, ['b', 'long', 'lab']).violations).toEqual([]);
    const { violations } = explain(text, job(), ADA, ['b', 'long']);
    expect(violations).toMatchObject([{ rule: 'r', what: expect.stringContaining('is missing') }]);
    const denied = explain(rule('{ pools: { deny: [default] } }'), job(), ADA, ['default']);
    expect(denied.violations).toMatchObject([{ what: expect.stringContaining('names no pool') }]);
  });
});

describe('who and what a rule is about', () => {
  test.each<[string, Partial<SubmittedSpec>, Who, boolean]>([
    ['match: { tenants: [guest-*] }', {}, BOB, true],
    ['match: { tenants: [guest-*] }', {}, ADA, false],
    ['match: { users: [a*], roles: [user] }', {}, ADA, true],
    ['match: { roles: [operator] }', {}, ADA, false],
    ['unless: { roles: [operator] }', {}, BOSS, false],
    ['unless: { roles: [operator, "jobs:manage"] }', {}, ADA, false],
    ['match: { labels: { a: "*" } }', { labels: { a: '' } }, ADA, true],
    ['match: { labels: { a: "*" } }', { labels: { b: '' } }, ADA, false],
    ['match: { pools: [lon*] }', { pool: 'long' }, ADA, true],
    ['match: { pools: [long] }', { pool: 'lab' }, ADA, false],
    ['match: { pools: [lon*] }', {}, ADA, true],
    ['match: { pools: [long] }', {}, ADA, false],
    ['unless: { pools: [long] }', { pool: 'long' }, ADA, false],
    ['unless: { pools: [long] }', {}, ADA, true],
    ['match: { kinds: [tpu] }', { resources: { device: { kind: 'tpu' } } }, ADA, true],
    ['match: { kinds: [tpu] }', {}, ADA, false],
    ['match: { leastDevices: 2 }', { resources: { device: { count: 2 } } }, ADA, true],
    ['match: { leastDevices: 2 }', { resources: { device: { count: 1 } } }, ADA, false],
    ['match: { shapes: [gang] }', {}, ADA, false],
    ['match: { priorities: [batch], trusts: [normal] }', {}, ADA, true],
    ['match: { interruptible: true }', {}, ADA, false],
    ['match: { images: ["docker.io/*"] }', { environment: { image: 'a' } }, ADA, true],
    ['match: { images: ["*"] }', {}, ADA, false],
  ])('%s on %j', (about, spec, who, applies) => {
    const text = rule('{ refuse: no }', `    ${about}\n`);
    expect(broken(text, spec, who)).toHaveLength(applies ? 1 : 0);
  });
});

describe('a refusal', () => {
  const text = `
rules:
  - { name: b, because: ask ops, require: { longestTimeLimit: 1d, mostRetries: 0 } }
  - { name: a, require: { priorities: [production] } }
`;
  const policy = readPolicy('p', text);
  const refused = (specs: JobSpec[]): { code: string; message: string } => {
    try {
      applyPolicy(policy, ADA, specs, null);
    } catch (error) {
      return error as { code: string; message: string };
    }
    throw new Error('it was allowed');
  };

  test('names every rule, with the value and what is allowed', () => {
    const { code, message } = refused([job({ retries: 1 })]);
    expect(code).toBe('POLICY');
    expect(message).toBe(
      'the site does not allow it: ' +
        'rule "a": the priority is batch; allowed are production; ' +
        'rule "b": it has 1 retries, at most 0 are allowed (ask ops); ' +
        'rule "b": it has no time limit; at most 1d is allowed (ask ops)',
    );
  });

  test('of many jobs tells each sentence once, and which job it is about', () => {
    const many = Array.from({ length: 1000 }, (_, at) => job({ name: `n${at}`, retries: at % 50 }));
    const { message } = refused(many);
    expect(message).toContain('job 1 ("n0"): the priority is batch');
    expect(message.match(/the priority is batch/g)).toHaveLength(1);
    expect(message.length).toBeLessThan(5000);
    const long = refused([job({ name: 'x'.repeat(200) }), job()]);
    expect(long.message).not.toContain('x'.repeat(61));
  });

  test('a change may break no rule that was kept', () => {
    const before = job({ priority: 'production' });
    const after = { ...before, priority: 'batch' as const };
    expect(() => refuseChange(policy, ADA, before, after)).toThrow(/rule "a"/);
    expect(() => refuseChange(policy, ADA, before, after)).not.toThrow(/rule "b"/);
    expect(() => refuseChange(policy, ADA, after, before)).not.toThrow();
    expect(() => refuseChange(null, ADA, before, after)).not.toThrow();
  });
});
