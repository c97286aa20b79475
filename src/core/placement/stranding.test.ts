/** What is expected to stay unused, in cases where one can say so. */
import { describe, expect, test } from 'vitest';
import { Demand } from './demand.ts';
import { cpuLevel, cpuStepOf, idleAt, sharedAt, strandingTables } from './stranding.ts';
import { testRequest, wants } from './testFleet.ts';

const CORES = 32_000;

/** Tables for a mix of (cores, devices, share), each asked for as often as the others. */
function tablesFor(...mix: [cores: number, count: number, share: number][]) {
  const demand = new Demand();
  const classes = mix.map(([cores, count, share]) => {
    const resources = wants({ cpuMillis: cores * 1000 }, { count, share });
    return demand.classOf(testRequest({}, { resources }))!;
  });
  for (let time = 0; time < 20_000; time++) for (const each of classes) demand.asked(each, 1);
  const tables = strandingTables(demand.mix, demand.mix.classes, cpuStepOf(CORES), 8);
  const cpu = (cores: number): number => cpuLevel(cores * 1000, tables.cpuStep);
  return {
    shared: (free: number, cores: number) => tables.shared[sharedAt(free, cpu(cores))]!,
    idle: (devices: number, cores: number) => tables.idle[idleAt(devices, cpu(cores))]!,
  };
}

describe('stranded', () => {
  test('is what nobody can use: an odd rest, or devices without CPU', () => {
    const { shared, idle } = tablesFor([4, 1, 500], [4, 1, 1000]);
    expect(shared(300, 32)).toBeCloseTo(0.6);
    expect(idle(2, 1)).toBeCloseTo(4, 1);
  });

  test('is little where what comes fills the rest exactly', () => {
    const { shared } = tablesFor([4, 1, 500], [4, 1, 1000]);
    expect(shared(500, 32)).toBeLessThan(shared(300, 32));
  });

  test('grows as CPU runs out', () => {
    const { idle } = tablesFor([4, 1, 1000], [8, 1, 1000]);
    const falling = [4, 8, 16, 32].map((cores) => idle(4, cores));
    expect(falling).toEqual(falling.toSorted((a, b) => b - a));
    expect(falling[0]).toBeGreaterThan(falling[3]! + 1);
  });

  test('counts an opened worker where whole ones are asked for', () => {
    const withLarge = tablesFor([4, 1, 1000], [32, 8, 1000]);
    const without = tablesFor([4, 1, 1000], [4, 1, 500]);
    const opening = (tables: typeof without) => tables.idle(7, 28) - tables.idle(8, 32);
    expect(opening(withLarge)).toBeGreaterThan(opening(without));
  });
});
