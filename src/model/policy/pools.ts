/** A job that leaves open to which pool it goes is kept to those that the rules allow it. */
import type { JobSpec } from '../job.ts';
import type { Constraint } from '../placement.ts';
import { poolsOf } from './match.ts';
import type { PolicyRule } from './schema.ts';

/**
 * In an order of their own: the same rules in another order give the same constraints. Null: there
 * is no pool that all of them allow.
 */
export function poolConstraints(rules: readonly PolicyRule[], spec: JobSpec): Constraint[] | null {
  if (poolsOf(spec)) return [];
  let allowed: string[] | null = null;
  const denied = new Set<string>();
  for (const { require: demands } of rules) {
    const { allow, deny = [] } = demands.pools ?? {};
    for (const name of deny) denied.add(name);
    if (allow) allowed = allowed ? allowed.filter((name) => allow.includes(name)) : allow;
  }
  if (!allowed) return [...denied].toSorted().map((name) => onPool('NE', [name]));
  const left = [...new Set(allowed)].filter((name) => !denied.has(name));
  return left.length > 0 ? [onPool('IN', left.toSorted())] : null;
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
