/** Whom and what a default or a rule is about. */
import { anyMatches } from '../../lib/glob.ts';
import type { JobSpec } from '../job.ts';
import { scopesOf } from '../roles.ts';
import type { Principal } from '../token.ts';
import { fullImageName } from './images.ts';
import type { DefaultMatch, RuleMatch } from './schema.ts';

/** Who asks, as far as a policy looks at it. */
export type Who = Pick<Principal, 'tenant' | 'user' | 'scopes'>;

/** The half that is the same for all jobs of one call. */
export function matchesWho({ tenants, users, roles }: DefaultMatch, who: Who): boolean {
  if (tenants && !anyMatches(tenants, who.tenant)) return false;
  if (users && !anyMatches(users, who.user)) return false;
  return !roles || roles.some((role) => holds(who, role));
}

export function matchesLabels({ labels }: DefaultMatch, spec: JobSpec): boolean {
  if (!labels) return true;
  return Object.entries(labels).every(([name, glob]) => {
    const value = Object.hasOwn(spec.labels, name) ? spec.labels[name] : undefined;
    return value !== undefined && glob.matches(value);
  });
}

/**
 * `surely`: a job that may go to several pools matches only where all of them match, so that it is
 * not exempt by a pool that it may not get. Otherwise one of them is enough: it may get that one.
 */
export function matchesSpec(match: RuleMatch, spec: JobSpec, surely: boolean): boolean {
  if (!matchesLabels(match, spec)) return false;
  const { device } = spec.resources;
  if (match.pools && !matchesPools(match.pools, spec, surely)) return false;
  if (match.priorities && !match.priorities.includes(spec.priority)) return false;
  if (match.kinds && !(device && match.kinds.includes(device.kind))) return false;
  if (match.leastDevices !== undefined && devicesAtOnce(spec) < match.leastDevices) return false;
  if (match.shapes && !match.shapes.includes(spec.shape.kind)) return false;
  if (match.trusts && !match.trusts.includes(spec.placement.trust)) return false;
  const { interruptible } = spec.placement;
  if (match.interruptible !== undefined && match.interruptible !== interruptible) return false;
  if (!match.images) return true;
  const image = spec.environment?.image ?? '';
  return image !== '' && anyMatches(match.images, fullImageName(image));
}

function matchesPools(
  globs: NonNullable<RuleMatch['pools']>,
  spec: JobSpec,
  surely: boolean,
): boolean {
  const pools = poolsOf(spec);
  if (!pools) return !surely;
  const fits = (pool: string): boolean => anyMatches(globs, pool);
  return surely ? pools.every(fits) : pools.some(fits);
}

/** The pools that a job keeps itself to; null: it may go to any. */
export function poolsOf({ pool, placement }: JobSpec): string[] | null {
  if (pool !== '') return [pool];
  let found: string[] | null = null;
  for (const { attribute, operator, values, preferred } of placement.constraints) {
    if (preferred || attribute !== 'pool' || (operator !== 'EQ' && operator !== 'IN')) continue;
    found = found ? found.filter((name) => values.includes(name)) : values;
  }
  return found;
}

/** Devices it may hold together; a share of one counts as the part it is. */
export function devicesAtOnce(spec: JobSpec): number {
  return devicesPerTask(spec) * tasksAtOnce(spec);
}

export function devicesPerTask({ resources: { device } }: JobSpec): number {
  return device ? (device.count * device.share) / 1000 : 0;
}

function tasksAtOnce({ shape }: JobSpec): number {
  if (shape.kind === 'single') return 1;
  if (shape.kind === 'gang') return shape.size;
  const tasks = shape.indices.length;
  return shape.limit > 0 ? Math.min(shape.limit, tasks) : tasks;
}

function holds({ scopes }: Who, role: string): boolean {
  return scopesOf([role]).every((scope) => scopes.includes(scope));
}
