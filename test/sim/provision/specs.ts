/** What users ask of pools whose machines come by themselves: more than is there, and short. */
import type { JobSpec } from '../../../src/model/job.ts';
import { jobSpec, type SubmittedSpec } from '../../../src/protocol/jobSpec.ts';
import { canaryOf } from '../people.ts';
import type { World } from '../world.ts';
import type { RentedPool } from './pools.ts';

const MOST_RUN_MS = 40_000;

export function drawRentedSpec(
  world: World,
  pools: readonly RentedPool[],
  tenant: string,
  name: string,
): JobSpec {
  const pool = world.chance(0.8) ? world.pick(pools).name : '';
  const runMs = world.between(100, world.chance(0.7) ? 5000 : MOST_RUN_MS);
  return jobSpec.parse({
    name,
    command: ['work', String(runMs), String(world.chance(0.15) ? 1 : 0)],
    env: { CANARY: canaryOf(tenant) },
    labels: { of: canaryOf(tenant) },
    shape: drawShape(world),
    resources: {
      cpuMillis: world.between(1, 4) * 1000,
      device: world.chance(0.7) ? { count: world.between(1, 2), share: 1000 } : null,
      ports: 0,
    },
    pool,
    priority: world.pick(['production', 'interactive', 'batch']),
    retries: world.between(1, 3),
    startWithinMs: world.chance(0.1) ? world.between(30_000, 200_000) : 0,
    graceMs: world.pick([0, 1000, 5000]),
    checkpoint: world.chance(0.2) ? { everyMs: world.between(1000, 5000), keep: 1 } : undefined,
  });
}

function drawShape(world: World): SubmittedSpec['shape'] {
  const shape = world.between(0, 9);
  if (shape < 6) return { kind: 'single' };
  if (shape < 8) return { kind: 'array', indices: [0, 1, 2], limit: 0 };
  return { kind: 'gang', size: 2 };
}
