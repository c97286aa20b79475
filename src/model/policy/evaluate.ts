/** A policy on a job: the job with what is filled in, and every rule that refuses it. Pure. */
import type { JobSpec } from '../job.ts';
import type { Constraint } from '../placement.ts';
import { defaultsFor, type Filled } from './defaults.ts';
import { checkDemands } from './demands.ts';
import { matchesSpec, matchesWho, type Who } from './match.ts';
import { avoidablePools, narrow, poolConstraints, type PoolRule, type Pools } from './pools.ts';
import type { Policy, PolicyRule } from './schema.ts';

export interface Violation {
  rule: string;
  /** The value, and what would be allowed. */
  what: string;
  /** The site's own words on it; empty: none. */
  because: string;
}

interface Verdict {
  /** As it is accepted; as it was sent where nothing is filled in. */
  spec: JobSpec;
  /** By rule and text, whatever the order of the rules. */
  violations: Violation[];
}

/** The same with all that led to it. */
export interface Explained extends Verdict {
  filled: Filled[];
  /** Rules of pools that it does not keep: it names no pool, and is kept out of those. */
  avoided: Violation[];
  /** How it is kept to pools. */
  narrowed: Constraint[];
  /** The names of the rules that looked at it. */
  rules: string[];
}

/** Of one caller: what does not look at the job is decided once. */
export interface Evaluator {
  judge(spec: JobSpec): Verdict;
  explain(spec: JobSpec): Explained;
}

/**
 * `pools` are those there are; null: nobody knows here. Answers null where the policy says nothing
 * about what this caller submits.
 */
export function evaluatorFor(policy: Policy, who: Who, pools: Pools): Evaluator | null {
  const rules = policy.rules.filter(({ match }) => matchesWho(match, who));
  const defaults = defaultsFor(policy, who);
  if (rules.length === 0 && !defaults) return null;
  const explain = (spec: JobSpec): Explained => {
    const filled: Filled[] = [];
    const whole = defaults ? defaults.fill(spec, filled) : spec;
    const fitting = rules.filter((rule) => appliesTo(rule, who, whole));
    const { violations, avoided, kept } = checkRules(fitting, whole);
    const narrowed = poolConstraints(kept, whole, pools);
    if (!narrowed) violations.push(...noPoolLeft(fitting), ...avoided);
    return {
      spec: narrow(whole, narrowed ?? []),
      violations: violations.toSorted(byRule),
      filled,
      avoided: avoided.toSorted(byRule),
      narrowed: narrowed ?? [],
      rules: fitting.map(({ name }) => name),
    };
  };
  return { explain, judge: sharing(explain) };
}

function appliesTo({ match, unless }: PolicyRule, who: Who, spec: JobSpec): boolean {
  if (!matchesSpec(match, spec, false)) return false;
  return !unless || !matchesWho(unless, who) || !matchesSpec(unless, spec, true);
}

/** A rule of pools that the job need not go to is not broken but avoided. */
function checkRules(rules: readonly PolicyRule[], spec: JobSpec) {
  const violations: Violation[] = [];
  const avoided: Violation[] = [];
  const kept: PoolRule[] = [];
  for (const { name, because = '', match, require: demands } of rules) {
    const found: Violation[] = [];
    checkDemands(demands, spec, (what) => found.push({ rule: name, what, because }));
    const avoidable = found.length > 0 ? avoidablePools(match, spec) : null;
    (avoidable ? avoided : violations).push(...found);
    kept.push(avoidable ? { deny: avoidable } : (demands.pools ?? {}));
  }
  return { violations, avoided, kept };
}

function noPoolLeft(rules: readonly PolicyRule[]): Violation[] {
  const what = 'it names no pool, and there is none that all rules allow it';
  return rules
    .filter(({ require: demands }) => demands.pools)
    .map(({ name, because = '' }) => ({ rule: name, what, because }));
}

function byRule(a: Violation, b: Violation): number {
  if (a.rule !== b.rule) return a.rule < b.rule ? -1 : 1;
  return a.what < b.what ? -1 : Number(a.what > b.what);
}

/**
 * Jobs of one call are mostly alike: what differs in name and command only shares the verdict, and
 * what is filled in. Equal ones stay one object.
 */
function sharing(explain: (spec: JobSpec) => Verdict): (spec: JobSpec) => Verdict {
  let last: { spec: JobSpec; verdict: Verdict } | null = null;
  return (spec) => {
    if (last?.spec === spec) return last.verdict;
    if (last && looksTheSame(last.spec, spec)) {
      const { name, command } = spec;
      const { spec: whole, violations } = last.verdict;
      const own = whole === last.spec ? spec : { ...whole, name, command };
      return { spec: own, violations };
    }
    const { spec: whole, violations } = explain(spec);
    last = { spec, verdict: { spec: whole, violations } };
    return last.verdict;
  };
}

/** In all but name and command; parts that are equal but other objects count as different. */
function looksTheSame(a: JobSpec, b: JobSpec): boolean {
  const keys = Object.keys(a) as (keyof JobSpec)[];
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => key === 'name' || key === 'command' || isSame(a[key], b[key]));
}

/** Texts by name are compared one by one: each job of a call has its own, often with equal ones. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!isPlain(a) || !isPlain(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && a[name] === b[name]);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
