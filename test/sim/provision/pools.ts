/** The pools of a seed whose machines come by themselves: what they may, cost and demand. */
import type { PoolPolicy } from '../../../src/core/placement/admission.ts';
import { OPEN_TERMS } from '../../../src/model/placement.ts';
import { poolSettings, type PoolSettings } from '../../../src/model/poolSettings.ts';
import type { Capabilities } from '../../../src/providers/contract.ts';
import type { FakePrices } from '../../../src/providers/fake/machine.ts';
import { NETWORK, RESOURCES } from '../sites.ts';
import type { World } from '../world.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const MICROS = 1_000_000;

export interface RentedPool {
  name: string;
  settings: PoolSettings;
  prices: FakePrices;
  capabilities: Capabilities;
  policy: PoolPolicy;
}

/**
 * rented: machines of one kind for any work. sized: each for one job. group: they are asked for by
 * a number, and cannot be told apart before they come.
 */
const KINDS = ['rented', 'sized', 'group'] as const;

/** Swarm: one or two of the kinds, with other numbers in each seed. */
export function drawRentedPools(world: World): RentedPool[] {
  const first = world.pick(KINDS);
  const names = world.chance(0.4) ? new Set([first, world.pick(KINDS)]) : new Set([first]);
  return [...names].map((name) => drawPool(world, name));
}

function drawPool(world: World, name: (typeof KINDS)[number]): RentedPool {
  const quantumMs = world.pick([10 * SECOND, MINUTE, 5 * MINUTE, 20 * MINUTE, 20 * MINUTE]);
  const price = world.between(1, 60);
  const max = world.between(2, 8);
  const sized = name === 'sized';
  const settings = poolSettings.parse({
    ...{ mode: sized ? 'job' : 'agents', min: !sized && world.chance(0.15) ? 1 : 0, max },
    ...{ maxPending: world.between(2, max), idleTimeoutMs: world.between(2, 40) * SECOND },
    ...{ cooldownMs: world.between(1, 5) * SECOND, bootTimeoutMs: world.between(90, 150) * SECOND },
    ...{ pollMs: world.between(2, 6) * SECOND, billingQuantumMs: quantumMs },
    ...{ pricePerInstanceHour: price, selfDestructAfterMs: HOUR },
    // Each that is launched has an hour set aside: one or two at once, until the money is gone.
    ...(world.chance(0.4) && { spendPerHour: (price * world.between(100, 250)) / 100 }),
    network: NETWORK,
  });
  const capabilities: Capabilities = {
    noun: 'pretended machine',
    batches: name !== 'group' && world.chance(0.7),
    gangs: sized,
    sized,
    queues: world.chance(0.3),
    labels: name !== 'group',
  };
  return {
    ...{ name, settings, capabilities },
    prices: { hourMicros: price * MICROS, quantumMs, from: world.pick(['booting', 'running']) },
    policy: {
      ...{ name, largestWorker: RESOURCES, terms: OPEN_TERMS },
      ...{ deviceHourMicros: 0, cpuHourMicros: 0 },
    },
  };
}
