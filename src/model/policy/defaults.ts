/**
 * What a policy fills in where a user said nothing: where a job has what every job has that does
 * not say it. The first default that fits and says a thing decides it. Filling in twice is the same
 * as once, since no default depends on what another fills in.
 */
import { shortDuration } from '../../lib/show.ts';
import type { JobSpec } from '../job.ts';
import type { EnvironmentSpec } from '../jobParts.ts';
import { matchesLabels, matchesWho, poolsOf, type Who } from './match.ts';
import type { Policy, PolicyDefaults } from './schema.ts';

/** What was filled in, for a person. */
export interface Filled {
  /** `priority`, `labels.site`. */
  what: string;
  value: string;
  /** Its number in the file, from 1. */
  from: number;
}

type Numbered = PolicyDefaults & { from: number };

export interface DefaultsFor {
  fill(spec: JobSpec, told?: Filled[]): JobSpec;
}

export function defaultsFor({ defaults }: Policy, who: Who): DefaultsFor | null {
  const mine: Numbered[] = [];
  for (const [at, one] of defaults.entries()) {
    if (matchesWho(one.match, who)) mine.push({ ...one, from: at + 1 });
  }
  if (mine.length === 0) return null;
  return {
    fill(spec, told) {
      const fitting = mine.filter(({ match }) => matchesLabels(match, spec));
      return fitting.length === 0 ? spec : fill(spec, fitting, told);
    },
  };
}

function fill(spec: JobSpec, defaults: readonly Numbered[], told: Filled[] | undefined): JobSpec {
  let filled = spec;
  const set = (change: Partial<JobSpec>, what: string, value: string, from: number): void => {
    filled = { ...filled, ...change };
    told?.push({ what, value, from });
  };
  const first = <Key extends keyof PolicyDefaults>(key: Key): Numbered | undefined =>
    defaults.find((one) => one[key] !== undefined);
  for (const [key, field] of DURATIONS) {
    const one = spec[field] === 0 ? first(key) : undefined;
    const value = one?.[key];
    if (one && value) set({ [field]: value }, key, shortDuration(value), one.from);
  }
  const { priority, from: priorityFrom = 0 } = first('priority') ?? {};
  if (priority && spec.priority === 'batch' && priority !== 'batch') {
    set({ priority }, 'priority', priority, priorityFrom);
  }
  const { pool, from: poolFrom = 0 } = first('pool') ?? {};
  if (pool && !poolsOf(spec)) set({ pool }, 'pool', pool, poolFrom);
  const { retries, from: retriesFrom = 0 } = first('retries') ?? {};
  if (retries && spec.retries === 0) set({ retries }, 'retries', String(retries), retriesFrom);
  const { trust, from: trustFrom = 0 } = first('trust') ?? {};
  if (trust === 'restricted' && spec.placement.trust === 'normal') {
    set({ placement: { ...spec.placement, trust } }, 'trust', trust, trustFrom);
  }
  const { image, from: imageFrom = 0 } = first('image') ?? {};
  if (image && isBare(spec.environment)) {
    set({ environment: { ...NO_ENVIRONMENT, image } }, 'image', image, imageFrom);
  }
  for (const key of ['env', 'labels'] as const) {
    const more = missing(spec[key], key, defaults, told);
    if (more) filled = { ...filled, [key]: { ...more, ...spec[key] } };
  }
  return filled;
}

const DURATIONS = [
  ['timeLimit', 'timeLimitMs'],
  ['startWithin', 'startWithinMs'],
] as const;

const NO_ENVIRONMENT: EnvironmentSpec = {
  image: '',
  shmBytes: 0,
  registrySecret: '',
  modules: [],
  lock: '',
};

/** An image excludes modules and a lock file: who names those wants none. */
function isBare(environment: EnvironmentSpec | undefined): boolean {
  if (!environment) return true;
  return environment.image === '' && environment.modules.length === 0 && environment.lock === '';
}

function missing(
  has: Readonly<Record<string, string>>,
  key: 'env' | 'labels',
  defaults: readonly Numbered[],
  told: Filled[] | undefined,
): Record<string, string> | null {
  let more: Map<string, string> | null = null;
  for (const { from, [key]: values } of defaults) {
    for (const [name, value] of Object.entries(values ?? {})) {
      if (Object.hasOwn(has, name) || more?.has(name)) continue;
      more ??= new Map();
      more.set(name, value);
      told?.push({ what: `${key}.${name}`, value, from });
    }
  }
  return more && Object.fromEntries(more);
}
