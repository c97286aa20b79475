/** What may be varied besides the fleet: `--policy key=value`. */
import { DEFAULT_POLICY, type SchedulePolicy } from '../../core/schedule/plan.ts';
import { DroverError } from '../../lib/errors.ts';
import { nearest } from '../../lib/nearest.ts';
import { PRIORITIES, type JobSpec, type Priority } from '../../model/job.ts';
import type { Readers } from './readers.ts';
import type { SimulatedJob } from './workload.ts';

export interface Policy {
  /** The planner's own. */
  schedule: SchedulePolicy;
  /** How often it is planned; 0: whenever something has changed. */
  tickMs: number;
  /** From placement to the command's start. */
  startDelayMs: number;
  /** Off: everything is batch. */
  bands: boolean;
  /** Off: budgets of the fleet file are left out. */
  budgets: boolean;
  /** Off: any model of device will do. */
  models: boolean;
  /** Bands of Slurm's QOS and partitions, by name. */
  bandOf: Map<string, Priority>;
}

const BAND_PREFIX = 'band.';
const KEYS = [
  'tick',
  'startDelay',
  'bands',
  'budgets',
  'models',
  'halfLife',
  'ageing',
  'backfill',
  'preemption',
] as const;

export function readPolicy(given: readonly string[], readers: Readers): Policy {
  const policy: Policy = {
    schedule: { ...DEFAULT_POLICY },
    tickMs: 0,
    startDelayMs: 0,
    bands: true,
    budgets: true,
    models: true,
    bandOf: new Map(),
  };
  for (const word of given) {
    const at = word.indexOf('=');
    if (at < 1) throw refused(`${JSON.stringify(word)} is not key=value`);
    setOne(policy, word.slice(0, at).trim(), word.slice(at + 1).trim(), readers);
  }
  return policy;
}

function setOne(policy: Policy, key: string, value: string, readers: Readers): void {
  if (key.startsWith(BAND_PREFIX)) {
    const band = PRIORITIES.find((one) => one === value);
    if (!band) throw refused(`${key} is one of ${PRIORITIES.join(', ')}, not ${value}`);
    policy.bandOf.set(key.slice(BAND_PREFIX.length).toLowerCase(), band);
    return;
  }
  switch (KEYS.find((known) => known === key)) {
    case 'tick':
      policy.tickMs = readers.durationMs(value, 'tick');
      return;
    case 'startDelay':
      policy.startDelayMs = readers.durationMs(value, 'startDelay');
      return;
    case 'bands':
      policy.bands = onOrOff(key, value);
      return;
    case 'budgets':
      policy.budgets = onOrOff(key, value);
      return;
    case 'models':
      policy.models = onOrOff(key, value);
      return;
    case 'halfLife':
      policy.schedule.halfLifeMs = readers.durationMs(value, 'halfLife');
      return;
    case 'ageing':
      policy.schedule.ageingMs = readers.durationMs(value, 'ageing');
      return;
    case 'backfill':
      policy.schedule.backfill = onOrOff(key, value);
      return;
    case 'preemption':
      policy.schedule.preemption = onOrOff(key, value);
      return;
    case undefined: {
      const guess = nearest(key, KEYS);
      const known = `${KEYS.join(', ')} and ${BAND_PREFIX}NAME`;
      throw refused(
        `there is no policy ${JSON.stringify(key)}` +
          (guess ? `; did you mean ${guess}?` : `; known are ${known}`),
      );
    }
  }
}

function onOrOff(key: string, value: string): boolean {
  if (value === 'on') return true;
  if (value === 'off') return false;
  throw refused(`${key} is on or off, not ${JSON.stringify(value)}`);
}

function refused(detail: string): DroverError {
  const hint = 'Write for example --policy tick=10s; docs/simulate.md lists them.';
  return new DroverError('INVALID_ARGUMENT', `--policy: ${detail}`, { hint });
}

/** The jobs as this policy sees them. Specs that were shared still are. */
export function* underPolicy(
  jobs: Iterator<SimulatedJob>,
  policy: Policy,
): Generator<SimulatedJob> {
  const changed = new Map<JobSpec, JobSpec>();
  const same = policy.bands && policy.models;
  for (let next = jobs.next(); !next.done; next = jobs.next()) {
    const job = next.value;
    if (same) {
      yield job;
      continue;
    }
    let spec = changed.get(job.spec);
    if (!spec) {
      spec = changedSpec(job.spec, policy);
      changed.set(job.spec, spec);
    }
    yield { ...job, spec };
  }
}

function changedSpec(spec: JobSpec, { bands, models }: Policy): JobSpec {
  const { device } = spec.resources;
  const anyModel = device && !models ? { ...device, models: [] } : device;
  return {
    ...spec,
    priority: bands ? spec.priority : 'batch',
    resources: { ...spec.resources, device: anyModel },
  };
}
