/** How long a plan of a large site takes, and that it grows no faster than the site. */
import { expect, test } from 'vitest';
import { wants } from '../placement/testFleet.ts';
import type { CapacityPool, Demand } from './capacity.ts';
import { planCapacity } from './plan.ts';
import { busy, idle, machine, MINUTE, NOW, testDemand, testInstance } from './testCapacity.ts';
import { testPool } from './testCapacity.ts';

/** Generous: alone it takes 0.3 s, and four times that on cores that others use. */
const MOST_MS = 5000;

test('10,000 demands, 20 pools, 2,000 instances', () => {
  planSite(1000);
  const tenth = planSite(1000);
  const whole = planSite(10_000);
  const words = `capacity plan: ${tenth.toFixed(0)} ms of 1,000 demands x 20 pools x 200 instances`;
  console.info(`${words}, ${whole.toFixed(0)} ms of 10,000 x 20 x 2,000`);
  expect(whole).toBeLessThan(MOST_MS);
});

/** Milliseconds. Every demand asks for something of its own, which is the worst case. */
function planSite(size: number): number {
  const pools = Array.from({ length: 20 }, (_, place) => poolOf(place, size / 100));
  const demands = Array.from({ length: size }, (_, at) => demandOf(at));
  const begun = performance.now();
  const plan = planCapacity(pools, demands, NOW);
  const took = performance.now() - begun;
  expect(plan.launches.length).toBeGreaterThan(0);
  expect(plan.unmet.length).toBeGreaterThan(0);
  return took;
}

function poolOf(place: number, instances: number): CapacityPool {
  const name = `pool${String(place).padStart(2, '0')}`;
  const resources = machine(place % 3 === 0 ? 0 : 8, { cpuMillis: 64_000 });
  const kinds = [testInstance, testInstance, busy, (id: string) => idle(id, MINUTE)];
  return testPool(name, {
    mode: place % 5 === 4 ? 'job' : 'agents',
    size: resources,
    perUser: place === 7,
    max: 2 * instances,
    maxPending: instances,
    cpuHourMicros: place * 1000,
    instances: Array.from({ length: instances }, (_, at) => ({
      ...(kinds[at % kinds.length] as typeof busy)(`i${at}.${place}`),
      resources,
    })),
  });
}

function demandOf(at: number): Demand {
  const gangSize = at % 50 === 0 ? 4 : 1;
  const device = at % 2 === 0 ? { count: 1 + (at % 4) } : null;
  const resources = wants({ cpuMillis: 1000 + at }, device);
  return testDemand(gangSize, { gangSize, resources, user: `u${at % 100}` });
}
