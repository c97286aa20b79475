/** Policy files: the example, and what is said about wrong ones. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readPolicy } from './read.ts';
import { POLICY_LIMITS, policySchema } from './schema.ts';

const EXAMPLE = 'deploy/policy.example.yaml';

const problemsOf = (text: string): string[] => {
  try {
    readPolicy('policy.yaml', text);
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    return (error as Error).message.split('\n').slice(1);
  }
  throw new Error('it was taken');
};

test('the example loads and shows every key', () => {
  const text = readFileSync(EXAMPLE, 'utf8');
  expect(readPolicy(EXAMPLE, text)).toMatchObject({ leaving: { jobs: 'cancel' } });
  const keys = new Set(text.match(/\w+(?=:)/g));
  const missing = keysOf(policySchema).filter((key) => !keys.has(key));
  expect(missing).toEqual([]);
});

test('a file that says nothing is a policy that says nothing', () => {
  expect(readPolicy('p', '')).toEqual({ defaults: [], rules: [], leaving: { jobs: 'keep' } });
  expect(readPolicy('p', 'defaults: []\n')).toMatchObject({ rules: [] });
});

test('unknown keys name the nearest and their line, all at once', () => {
  const text = [
    'rule: []',
    'defaults:',
    '  - timelimit: 4h',
    'rules:',
    '  - name: a',
    '    require: { images: { alow: ["*"] }, longestTimeLimit: 1d }',
    '  - name: b',
    '    match: { tenant: [x] }',
    '    require: { zebra: 1 }',
  ].join('\n');
  const problems = problemsOf(text);
  expect(problems).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/line 1, rule: there is no such key; did you mean rules\?/),
      expect.stringMatching(/line 3, defaults\[0\]\.timelimit: .*did you mean timeLimit\?/),
      expect.stringMatching(/line 6, rules\[0\]\.require\.images\.alow: .*mean allow\?/),
      expect.stringMatching(/line 8, rules\[1\]\.match\.tenant: .*mean tenants\?/),
      expect.stringMatching(/line 9, rules\[1\]\.require\.zebra: .*there are: timeLimitRequired/),
    ]),
  );
});

test.each([
  ['rules:\n  - name: a\n    require: {}', /demands nothing/],
  ['rules:\n  - require: { mostDevices: 1 }', /rules\[0\]\.name/],
  ['rules:\n  - name: a\n    require: { mostDevices: -1 }', /mostDevices/],
  ['rules:\n  - name: a\n    require: { longestTimeLimit: soon }', /"soon" is no duration/],
  ['rules:\n  - name: a\n    require: { longestTimeLimit: 0 }', /is no duration/],
  ['rules:\n  - name: "a b"\n    require: { mostDevices: 1 }', /is no name/],
  ['rules:\n  - name: a\n    unless: {}\n    require: { mostDevices: 1 }', /exempts everything/],
  ['rules:\n  - name: a\n    require: { images: { allow: [] } }', /images\.allow/],
  ['rules:\n  - name: a\n    match: { roles: [king] }\n    require: { mostDevices: 1 }', /roles/],
  [
    'rules:\n  - name: a\n    require: { images: { allow: [ubuntu] } }',
    /docker\.io\/library\/ubuntu/,
  ],
  ['defaults:\n  - match: { tenants: [a] }', /fills in nothing/],
  ['defaults: 3', /defaults/],
  ['leaving: { jobs: burn }', /leaving\.jobs/],
  ['rules: [', /line 1/],
  ['- a\n- b', /expected object/],
  ['rules: []\nrules: []', /unique/i],
])('%j is refused', (text, problem) => {
  expect(problemsOf(text).join('\n')).toMatch(problem);
});

test('two rules of one name, and defaults that depend on each other, are refused', () => {
  const rule = '  - name: a\n    require: { mostDevices: 1 }\n';
  expect(problemsOf(`rules:\n${rule}${rule}`).join()).toMatch(
    /line 4.*two rules have the name "a"/,
  );
  const text =
    'defaults:\n  - labels: { a: x }\n  - match: { labels: { a: x } }\n    labels: { b: y }\n';
  expect(problemsOf(text).join()).toMatch(/match\.labels\.a: is itself filled in/);
});

test('hostile files are refused, not worked on for long', () => {
  const begun = performance.now();
  const many = Array.from({ length: POLICY_LIMITS.rules + 1 }, (_, n) => `  - name: r${n}\n`);
  expect(problemsOf(`rules:\n${many.join('')}`).length).toBeGreaterThan(0);
  const long = 'x'.repeat(POLICY_LIMITS.patternLength + 1);
  expect(problemsOf(`defaults:\n  - match: { tenants: [${long}] }\n    retries: 1`)).toHaveLength(
    1,
  );
  const patterns = Array.from({ length: POLICY_LIMITS.patterns + 1 }, () => 'a').join(', ');
  const listed = `rules:\n  - name: a\n    require: { secrets: { allow: [${patterns}] } }`;
  expect(problemsOf(listed)).toHaveLength(1);
  const pools = Array.from({ length: POLICY_LIMITS.poolNames + 1 }, (_, n) => `p${n}`).join(', ');
  const kept = `rules:\n  - name: a\n    require: { pools: { deny: [${pools}] } }`;
  expect(problemsOf(kept)).toHaveLength(1);
  const fills = Array.from({ length: POLICY_LIMITS.defaults + 1 }, () => '  - retries: 1\n');
  expect(problemsOf(`defaults:\n${fills.join('')}`)).toHaveLength(1);
  expect(problemsOf(`# ${'x'.repeat(POLICY_LIMITS.fileBytes)}`).join()).toMatch(/the limit is/);
  const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x]'];
  for (let n = 0; n < 8; n++) {
    const nine = Array.from({ length: 9 }, () => `*a${n}`).join(', ');
    bomb.push(`a${n + 1}: &a${n + 1} [${nine}]`);
  }
  expect(problemsOf(bomb.join('\n')).length).toBeGreaterThan(0);
  expect(performance.now() - begun).toBeLessThan(5000);
});

/** Every key that the schema knows, at any depth. */
function keysOf(schema: z.core.$ZodType): string[] {
  if (schema instanceof z.ZodObject) {
    return Object.entries(schema.shape).flatMap(([key, inner]) => [
      key,
      ...keysOf(inner as z.core.$ZodType),
    ]);
  }
  if (schema instanceof z.ZodArray) return keysOf(schema.element);
  if (schema instanceof z.ZodOptional) return keysOf(schema.unwrap());
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return keysOf(schema.unwrap());
  }
  return [];
}
