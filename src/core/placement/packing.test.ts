/**
 * How full a fleet gets: a small one of our own, with the traits that make packing hard (shares
 * that leave an odd rest, workers short of CPU, work for whole workers). A regression shows here
 * before it shows in `make bench-placement`.
 */
import { expect, test } from 'vitest';
import type { PlacementRequest } from './request.ts';
import { Fleet } from './fleet.ts';
import { GIB, gpus, hold, testRequest, testWorker, wants } from './testFleet.ts';

const FLEET: [count: number, devices: number, cores: number, model: string][] = [
  [30, 8, 96, 'big'],
  [20, 2, 96, 'roomy'],
  [16, 2, 16, 'tight'],
  [6, 4, 32, 'middle'],
];

const WORK: [weight: number, count: number, share: number, cores: number, models: string[]][] = [
  [46, 1, 1000, 11, []],
  [8, 1, 1000, 4, []],
  [6, 1, 1000, 19, []],
  [13, 1, 810, 3, []],
  [9, 1, 470, 10, []],
  [3, 1, 650, 12, []],
  [4, 1, 320, 4, []],
  [3, 1, 230, 4, []],
  [1, 1, 160, 4, []],
  [4, 1, 1000, 6, ['roomy']],
  [1, 8, 1000, 70, []],
  [12, 0, 0, 14, []],
];

test('a fleet that is asked for more than it has gets full', () => {
  const runs = [1, 2, 3].map(fillBy);
  const mean = runs.reduce((sum, full) => sum + full, 0) / runs.length;
  // Always the fullest worker that fits reaches 92.9.
  expect(mean).toBeGreaterThan(95);
});

/** Percent of device thousandths in use after 130 % were asked for. */
function fillBy(seed: number): number {
  const fleet = new Fleet();
  let capacity = 0;
  for (const [count, devices, cores, model] of FLEET) {
    for (let at = 0; at < count; at++) {
      const size = { cpuMillis: cores * 1000, memoryBytes: 4 * cores * GIB };
      fleet.setWorker(testWorker(`${model}${at}`, {}, { ...size, devices: gpus(devices, model) }));
      capacity += devices * 1000;
    }
  }
  const requests = WORK.map(requestOf);
  const next = randomFrom(seed);
  let asked = 0;
  let used = 0;
  while (asked < 1.3 * capacity) {
    const at = pick(next());
    const [, count, share] = WORK[at]!;
    const request = requests[at]!;
    const spot = fleet.place(request);
    asked += count * share;
    if (!spot) continue;
    hold(fleet, request, spot);
    used += count * share;
  }
  return (100 * used) / capacity;
}

function requestOf([, count, share, cores, models]: (typeof WORK)[number]): PlacementRequest {
  const size = { cpuMillis: cores * 1000, memoryBytes: 3 * cores * GIB };
  return testRequest({}, { resources: wants(size, count > 0 ? { count, share, models } : null) });
}

function pick(random: number): number {
  let left = random * WORK.reduce((sum, [weight]) => sum + weight, 0);
  return WORK.findIndex(([weight]) => (left -= weight) < 0);
}

function randomFrom(seed: number): () => number {
  let state = seed * 7919 + 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
