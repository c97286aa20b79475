/** A policy on the jobs of a call: all as they are accepted, or one error that names every rule. */
import { DroverError } from '../../lib/errors.ts';
import type { JobSpec } from '../job.ts';
import { evaluatorFor, type Violation } from './evaluate.ts';
import type { Who } from './match.ts';
import type { Pools } from './pools.ts';
import type { Policy } from './schema.ts';

/** Of a call with many jobs each sentence is told once, and not more of them than this. */
const TOLD_VIOLATIONS = 30;

/** `pools` are those there are; null: nobody knows here. */
export function applyPolicy(policy: Policy, who: Who, specs: JobSpec[], pools: Pools): JobSpec[] {
  const evaluator = evaluatorFor(policy, who, pools);
  if (!evaluator) return specs;
  const told = new Map<string, Violation>();
  const rules = new Set<string>();
  const accepted = specs.map((spec, at) => {
    const verdict = evaluator.judge(spec);
    for (const violation of verdict.violations) {
      rules.add(violation.rule);
      const key = `${violation.rule} ${violation.what}`;
      if (told.has(key) || told.size >= TOLD_VIOLATIONS) continue;
      const which = specs.length > 1 ? `${nameOf(spec, at)}: ` : '';
      told.set(key, { ...violation, what: which + violation.what });
    }
    return verdict.spec;
  });
  if (rules.size > 0) throw refusal([...told.values()], [...rules].toSorted());
  return accepted;
}

/** Refuses a change that breaks rules which the job did not break before. */
export function refuseChange(
  policy: Policy | null,
  who: Who,
  before: JobSpec,
  after: JobSpec,
): void {
  const evaluator = policy && evaluatorFor(policy, who, null);
  if (!evaluator) return;
  const keyOf = ({ rule, what }: Violation): string => `${rule} ${what}`;
  const known = new Set(evaluator.judge(before).violations.map(keyOf));
  const fresh = evaluator.judge(after).violations.filter((one) => !known.has(keyOf(one)));
  if (fresh.length > 0) throw refusal(fresh, []);
}

function refusal(violations: readonly Violation[], rules: readonly string[]): DroverError {
  const sentences = violations.map(
    ({ rule, what, because }) => `rule "${rule}": ${what}${because && ` (${because})`}`,
  );
  const told = new Set(violations.map(({ rule }) => rule));
  const untold = rules.filter((rule) => !told.has(rule));
  if (untold.length > 0) sentences.push(`and by ${untold.join(', ')}`);
  return new DroverError('POLICY', `the site does not allow it: ${sentences.join('; ')}`, {
    hint: 'ask for what is allowed; an operator can try it with: drover policy test',
  });
}

function nameOf({ name }: JobSpec, at: number): string {
  return name === '' ? `job ${at + 1}` : `job ${at + 1} (${JSON.stringify(name.slice(0, 60))})`;
}
