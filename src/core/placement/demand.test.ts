/** The mix that is kept room for follows what is asked for. */
import { describe, expect, test } from 'vitest';
import { Demand } from './demand.ts';
import { testRequest, wants } from './testFleet.ts';

const whole = testRequest({}, { resources: wants({ memoryBytes: 500 }, {}) });
const half = testRequest({}, { resources: wants({ memoryBytes: 500 }, { share: 500 }) });

function ask(demand: Demand, request: typeof whole, times: number): void {
  for (let time = 0; time < times; time++) demand.asked(demand.classOf(request)!, 1);
}

const weights = (demand: Demand) =>
  Object.fromEntries(
    demand.mix.classes.map(({ of, weight }) => [of.device.share, Math.round(100 * weight)]),
  );

describe('the mix', () => {
  test('starts with whole devices, and soon follows what is asked for', () => {
    const demand = new Demand();
    expect(weights(demand)).toHaveProperty('1000');
    expect(demand.mix.cpuPerByte).toBeNull();
    expect(demand.classOf(testRequest())).toBeNull();
    ask(demand, half, 3000);
    expect(weights(demand)[500]).toBeGreaterThan(90);
    expect(demand.mix.cpuPerByte).toBe(2);
  });

  test('stays the same object while little changes', () => {
    const demand = new Demand();
    for (let round = 0; round < 5000; round++) {
      ask(demand, whole, 3);
      ask(demand, half, 1);
    }
    const { mix } = demand;
    for (let round = 0; round < 5000; round++) {
      ask(demand, whole, 3);
      ask(demand, half, 1);
    }
    expect(demand.mix).toBe(mix);
  });

  test('forgets what is no longer asked for', () => {
    const demand = new Demand();
    ask(demand, whole, 20_000);
    ask(demand, half, 60_000);
    expect(weights(demand)[1000] ?? 0).toBeLessThan(10);
    ask(demand, whole, 60_000);
    expect(weights(demand)[500] ?? 0).toBeLessThan(10);
  });
});
