/** What users ask for: specs drawn from the seed, such that each could run on an empty fleet. */
import type { PoolPolicy } from '../../src/core/placement/admission.ts';
import type { JobSpec } from '../../src/model/job.ts';
import type { PlacementSpec } from '../../src/model/placement.ts';
import { jobSpec, type SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import type { Behaviour } from './machine.ts';
import { canaryOf } from './people.ts';
import { feasible, UNIT_MICROS } from './sites.ts';
import type { World } from './world.ts';

export interface DrawOptions {
  world: World;
  pools: readonly PoolPolicy[];
  tenant: string;
  /** Rules that only a planner keeps: off where plans are made at random. */
  particular: boolean;
  /** The clock of this seed's controller may be stepped, so that retries are worth having. */
  name: string;
}

/** Most tasks are short; some outlast every lease. */
const RUNS_MS = [
  [10, 500],
  [10, 500],
  [500, 10_000],
  [500, 20_000],
  [20_000, 60_000],
] as const;
const ARRAY_INDICES = [1, 2, 5];

export function drawSpec(options: DrawOptions): JobSpec {
  for (;;) {
    const spec = jobSpec.parse(draw(options));
    if (feasible(spec, options.tenant, options.pools)) return spec;
  }
}

function draw({ world, tenant, particular, name }: DrawOptions): SubmittedSpec {
  const [least, most] = world.pick(RUNS_MS);
  const share = world.chance(0.2) ? world.pick([300, 500]) : 1000;
  const count = share < 1000 ? 1 : world.between(1, 2);
  return {
    name,
    command: ['work', String(world.between(least, most)), String(world.chance(0.25) ? 1 : 0)],
    env: { CANARY: canaryOf(tenant) },
    labels: { of: canaryOf(tenant) },
    shape: drawShape(world),
    resources: {
      cpuMillis: world.between(1, 4) * 500,
      device: world.chance(0.6) ? { count, share } : null,
      ports: world.chance(0.3) ? 1 : 0,
    },
    pool: world.chance(0.1) ? world.pick(['default', 'rented']) : '',
    placement: drawPlacement(world, particular),
    priority: world.pick(['production', 'interactive', 'batch']),
    retries: world.between(0, 3),
    timeLimitMs: world.chance(0.2) ? world.between(2000, 15_000) : 0,
    startWithinMs: world.chance(0.15) ? world.between(1000, 30_000) : 0,
    graceMs: world.pick([0, 1000, 5000]),
    attemptLeaseMs: world.chance(0.1) ? world.between(60_000, 70_000) : 0,
    checkpoint: world.chance(0.3)
      ? { everyMs: world.between(1000, 5000), keep: world.between(1, 3) }
      : undefined,
    maxCostMicros: world.chance(0.1) ? world.between(1, 20) * UNIT_MICROS : 0,
  };
}

function drawShape(world: World): SubmittedSpec['shape'] {
  const shape = world.between(0, 9);
  if (shape < 5) return { kind: 'single' };
  if (shape >= 7) return { kind: 'gang', size: world.between(2, 3) };
  const limit = world.chance(0.6) ? world.between(1, 2) : 0;
  return { kind: 'array', indices: ARRAY_INDICES, limit };
}

function drawPlacement(world: World, particular: boolean): Partial<PlacementSpec> {
  const placement: Partial<PlacementSpec> = { interruptible: world.chance(0.4) };
  if (!particular || world.chance(0.6)) return placement;
  if (world.chance(0.3)) placement.antiAffinity = world.pick(['one', 'two']);
  if (world.chance(0.2)) placement.exclusive = true;
  if (world.chance(0.2)) placement.locality = 'rack';
  if (world.chance(0.2)) placement.trust = 'restricted';
  if (world.chance(0.2)) placement.arrangement = 'spread';
  if (world.chance(0.4)) placement.constraints = [world.pick(CONSTRAINTS)];
  return placement;
}

const CONSTRAINTS: PlacementSpec['constraints'] = [
  { attribute: 'rack', operator: 'EQ', values: ['a'], preferred: false },
  { attribute: 'rack', operator: 'NE', values: ['a'], preferred: true },
  { attribute: 'generation', operator: 'GT', values: ['1'], preferred: false },
  { attribute: 'generation', operator: 'LT', values: ['3'], preferred: true },
  { attribute: 'name', operator: 'IN', values: ['machine1', 'machine2'], preferred: false },
  { attribute: 'spot', operator: 'EXISTS', values: [], preferred: true },
  { attribute: 'pool', operator: 'NE', values: ['rented'], preferred: false },
];

/** About how long a task runs, as its command says. */
export function runMs({ command }: { command: string[] }): number {
  return Number(command[1]);
}

/** Drawn per attempt: how long it runs, and whether this try goes wrong. */
export function behaviour(world: World, command: string[]): Behaviour {
  const fails = command[2] === '1' && world.chance(0.7);
  return {
    durationMs: Math.ceil(runMs({ command }) * (0.5 + world.random.next())),
    exitCode: fails ? world.between(1, 3) : 0,
    ignoresTerm: world.chance(0.2),
  };
}
