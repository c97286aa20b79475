/** A job that leaves open to which pool it goes is kept to those that the rules allow it. */
import type { JobSpec } from '../job.ts';
import type { Constraint } from '../placement.ts';
import { poolsOf } from './match.ts';
import type { RuleMatch } from './schema.ts';

export type Pools = ReadonlySet<string> | null;

/** What a rule says about pools, by name. */
export interface PoolRule {
  allow?: readonly string[] | undefined;
  deny?: readonly string[] | undefined;
}

/** Pools of a rule that a job need not go to, since it names none; null: it cannot avoid them. */
export function avoidablePools({ pools }: RuleMatch, spec: JobSpec): string[] | null {
  if (!pools || poolsOf(spec)) return null;
  return pools.every(({ isPlain }) => isPlain) ? pools.map(({ text }) => text) : null;
}

/**
 * In an order of their own: the same rules in another order give the same constraints. Null: there
 * is no pool that all of them allow.
 */
export function poolConstraints(
  rules: readonly PoolRule[],
  spec: JobSpec,
  pools: Pools,
): Constraint[] | null {
  if (poolsOf(spec)) return [];
  let allowed: readonly string[] | null = null;
  const denied = new Set<string>();
  for (const { allow, deny = [] } of rules) {
    for (const name of deny) denied.add(name);
    if (allow) allowed = allowed ? allowed.filter((name) => allow.includes(name)) : allow;
  }
  const left = [...new Set(allowed ?? pools)].filter((name) => !denied.has(name));
  if ((allowed || pools) && left.length === 0) return null;
  if (allowed) return [onPool('IN', left.toSorted())];
  return [...denied].toSorted().map((name) => onPool('NE', [name]));
}

function onPool(operator: 'NE' | 'IN', values: string[]): Constraint {
  return { attribute: 'pool', operator, values, preferred: false };
}

/** What of them it does not have yet. */
export function narrow(spec: JobSpec, wanted: readonly Constraint[]): JobSpec {
  const { constraints } = spec.placement;
  const known = new Set(constraints.map((one) => JSON.stringify(keyOf(one))));
  const more = wanted.filter((one) => !known.has(JSON.stringify(keyOf(one))));
  if (more.length === 0) return spec;
  return { ...spec, placement: { ...spec.placement, constraints: [...constraints, ...more] } };
}

function keyOf({ attribute, operator, values, preferred }: Constraint): unknown[] {
  return [attribute, operator, values, preferred];
}
