/** Work goes where its inputs are, among workers that are otherwise as good. */
import { describe, expect, test } from 'vitest';
import type { WorkerId } from '../../model/ids.ts';
import type { Fleet } from './fleet.ts';
import type { PlacementRequest } from './request.ts';
import { fleetOf, gpus, hold, testRequest, testWorker, wants } from './testFleet.ts';

const id = (name: string): WorkerId => name as WorkerId;
const place = (fleet: Fleet, request: PlacementRequest, inputs: string[]): string | undefined =>
  fleet.place(request, inputs)?.worker;

describe('inputs that workers hold', () => {
  test('decide between workers that are as good; without inputs nothing changes', () => {
    const names = ['a', 'b', 'c', 'd'];
    const fleet = fleetOf(...names.map((name) => testWorker(name)));
    const request = testRequest();
    const usual = fleet.place(request)?.worker;
    for (const name of names) {
      fleet.setHeld(id(name), [{ hash: 'x', bytes: 10 }]);
      expect(place(fleet, request, ['x'])).toBe(name);
      expect(fleet.place(request)?.worker).toBe(usual);
      expect(place(fleet, request, ['y'])).toBe(usual);
      fleet.setHeld(id(name), []);
    }
    expect(place(fleet, request, ['x'])).toBe(usual);
  });

  test('more bytes are better, over all inputs together', () => {
    const fleet = fleetOf(testWorker('a'), testWorker('b'), testWorker('c'));
    fleet.setHeld(id('a'), [{ hash: 'x', bytes: 10 }]);
    fleet.setHeld(id('b'), [
      { hash: 'x', bytes: 10 },
      { hash: 'y', bytes: 1 },
    ]);
    fleet.setHeld(id('c'), [{ hash: 'z', bytes: 1000 }]);
    expect(place(fleet, testRequest(), ['x', 'y'])).toBe('b');
    expect(place(fleet, testRequest(), ['x', 'x', 'z'])).toBe('c');
  });

  test('are not waited for: what is full or gone is passed over', () => {
    const fleet = fleetOf(testWorker('a'), testWorker('b'), testWorker('c'));
    fleet.setHeld(id('a'), [{ hash: 'x', bytes: 10 }]);
    fleet.setHeld(id('b'), [{ hash: 'x', bytes: 5 }]);
    const large = testRequest({}, { resources: wants({ cpuMillis: 5000 }) });
    const placed = [1, 2, 3].map(() => {
      const spot = fleet.place(large, ['x']);
      hold(fleet, large, spot);
      return spot?.worker;
    });
    expect(placed).toEqual(['a', 'b', 'c']);
    expect(place(fleet, large, ['x'])).toBeUndefined();
    fleet.removeWorker(id('a'));
    fleet.setWorker(testWorker('a'));
    expect(place(fleet, testRequest(), ['x'])).toBe('b');
    fleet.setWorker(testWorker('b', { open: false }));
    expect(place(fleet, testRequest(), ['x'])).not.toBe('b');
  });

  test('come after what the user prefers and what it costs, and before packing', () => {
    const dear = { deviceHourMicros: 5, cpuHourMicros: 5 };
    const fleet = fleetOf(
      testWorker('dear', dear),
      testWorker('cheap'),
      testWorker('nvme', { attributes: { disk: 'nvme' }, ...dear }),
    );
    fleet.setHeld(id('dear'), [{ hash: 'x', bytes: 10 }]);
    expect(place(fleet, testRequest(), ['x'])).toBe('cheap');
    const constraints = [
      { attribute: 'disk', operator: 'EQ' as const, values: ['nvme'], preferred: true },
    ];
    expect(place(fleet, testRequest({ constraints }), ['x'])).toBe('nvme');
    const idle = fleetOf(
      testWorker('full', {}, { devices: gpus(4) }),
      testWorker('idle', {}, { devices: gpus(4) }),
    );
    const one = testRequest({}, { resources: wants({}, {}) });
    idle.setHeld(id('full'), [{ hash: 'fill', bytes: 1 }]);
    hold(idle, one, idle.place(one, ['fill']));
    expect(idle.place(one)?.worker).toBe('full');
    idle.setHeld(id('idle'), [{ hash: 'x', bytes: 1 }]);
    const spot = idle.place(one, ['x']);
    expect(spot).toMatchObject({ worker: 'idle', devices: [0] });
    hold(idle, one, spot);
    expect(idle.place(one, ['x'])).toMatchObject({ worker: 'idle', devices: [1] });
  });

  test('of many holders some hundred are looked at', () => {
    const fleet = fleetOf(...Array.from({ length: 2000 }, (_, at) => testWorker(`w${at}`)));
    for (let at = 0; at < 2000; at++) fleet.setHeld(id(`w${at}`), [{ hash: 'x', bytes: 7 }]);
    const request = testRequest();
    const begun = performance.now();
    for (let n = 0; n < 1000; n++) hold(fleet, request, fleet.place(request, ['x']));
    for (let at = 0; at < 1000; at++) fleet.setHeld(id(`w${at}`), []);
    for (let n = 0; n < 1000; n++) hold(fleet, request, fleet.place(request, ['x']));
    expect(performance.now() - begun).toBeLessThan(2000);
  });
});

describe('a gang', () => {
  const racked = (name: string, network: string) =>
    testWorker(name, { network }, { devices: gpus(2) });
  const request = (placement: Parameters<typeof testRequest>[0] = {}) =>
    testRequest(placement, { resources: wants({}, { count: 2 }), gangSize: 2 });
  const where = (fleet: Fleet, inputs: string[], placement = {}) =>
    fleet
      .placeGang(request(placement), 2, inputs)
      ?.map(({ worker }) => worker)
      .toSorted();

  test('goes to the network whose workers have most of its inputs, and to those', () => {
    const lan = ['a', 'b', 'c', 'd'].map((name) => racked(name, 'lan'));
    const wan = ['e', 'f'].map((name) => racked(name, 'wan'));
    const fleet = fleetOf(...lan, ...wan);
    // Packing takes the smaller one.
    expect(where(fleet, [])).toEqual(['e', 'f']);
    expect(where(fleet, ['x'])).toEqual(['e', 'f']);
    fleet.setHeld(id('b'), [{ hash: 'x', bytes: 10 }]);
    expect(where(fleet, ['x'])).toContain('b');
    fleet.setHeld(id('d'), [{ hash: 'x', bytes: 10 }]);
    expect(where(fleet, ['x'])).toEqual(['b', 'd']);
    expect(where(fleet, ['x'], { arrangement: 'spread' })).toHaveLength(2);
    fleet.setHeld(id('e'), [{ hash: 'x', bytes: 50 }]);
    expect(where(fleet, ['x'])).toEqual(['e', 'f']);
    expect(where(fleet, ['y'])).toEqual(['e', 'f']);
    expect(fleet.heldOn(id('e'), ['x', 'y'])).toBe(50);
  });

  test('does not go where it has no room for all, whatever is there', () => {
    const fleet = fleetOf(racked('a', 'lan'), racked('b', 'wan'), racked('c', 'wan'));
    fleet.setHeld(id('a'), [{ hash: 'x', bytes: 10 }]);
    expect(where(fleet, ['x'])).toEqual(['b', 'c']);
  });
});
