/** Where a request may go and where it goes best: rule by rule. */
import { OPEN_TERMS } from '../../model/placement.ts';
import { describe, expect, test } from 'vitest';
import type { AttemptUid } from '../../model/ids.ts';
import type { Constraint } from '../../model/placement.ts';
import { claimOf } from './capacity.ts';
import { fleetOf, gpus, hold, put, testRequest, testWorker, wants, GIB } from './testFleet.ts';

const counted = (...counts: [string, number][]) => new Map(counts);
const zone = (value: string, preferred = false): Constraint => ({
  attribute: 'zone',
  operator: 'EQ',
  values: [value],
  preferred,
});

describe('a worker is passed over', () => {
  test('by the first reason, each worker counted once', () => {
    const fleet = fleetOf(
      testWorker('elsewhere', { pool: 'other' }),
      testWorker('drained', { open: false }),
      testWorker('theirs', {
        terms: { ...OPEN_TERMS, tenants: ['x'] },
      }),
      testWorker('zoneless'),
      testWorker('bare', { attributes: { zone: 'a' } }),
      testWorker('slow', { attributes: { zone: 'a' } }, { devices: gpus(1), cpuMillis: 500 }),
      testWorker('small', { attributes: { zone: 'a' } }, { devices: gpus(1), memoryBytes: 1 }),
      testWorker('shut', { attributes: { zone: 'a' } }, { devices: gpus(1), portRange: [7, 7] }),
    );
    const resources = wants({ memoryBytes: GIB, ports: 2 }, {});
    const request = testRequest({ constraints: [zone('a')] }, { pool: 'default', resources });
    expect(fleet.place(request)).toBeNull();
    expect(fleet.rejections(request)).toEqual(
      counted(
        ['pool', 1],
        ['closed', 1],
        ['terms', 1],
        ['constraint', 1],
        ['devices', 1],
        ['cpus', 1],
        ['memory', 1],
        ['ports', 1],
      ),
    );
  });

  test('when it has the wrong devices', () => {
    const fleet = fleetOf(testWorker('w', {}, { devices: gpus(2, 'NVIDIA H100 80GB HBM3') }));
    const asks = (device: object) => fleet.place(testRequest({}, { resources: wants({}, device) }));
    expect(asks({ kind: 'tpu' })).toBeNull();
    expect(asks({ models: ['A100'] })).toBeNull();
    expect(asks({ models: ['A100', 'h100'] })).toMatchObject({ devices: [0] });
    expect(asks({ memoryBytes: 81 * GIB })).toBeNull();
    expect(asks({ count: 3 })).toBeNull();
    expect(asks({ count: 2 })).toMatchObject({ devices: [0, 1] });
  });

  test('while something else is there, when it must be alone; and nobody joins it', () => {
    const fleet = fleetOf(testWorker('w'));
    const alone = testRequest({ exclusive: true });
    const plain = testRequest();
    const first = hold(fleet, plain, fleet.place(plain));
    expect(fleet.rejections(alone)).toEqual(counted(['exclusive', 1]));
    fleet.give(first);
    const second = hold(fleet, alone, fleet.place(alone));
    expect(fleet.place(plain)).toBeNull();
    expect(fleet.rejections(plain)).toEqual(counted(['exclusive', 1]));
    fleet.give(second);
    expect(fleet.place(plain)).not.toBeNull();
  });

  test('by a second task of an anti-affinity group, but only of the same tenant', () => {
    const fleet = fleetOf(testWorker('w1'), testWorker('w2'));
    const apart = testRequest({ antiAffinity: 'db' });
    const first = hold(fleet, apart, fleet.place(apart));
    put(fleet, apart);
    expect(fleet.place(apart)).toBeNull();
    expect(fleet.rejections(apart)).toEqual(counted(['anti-affinity', 2]));
    expect(fleet.place(testRequest({ antiAffinity: 'db' }, { tenant: 'x' }))).not.toBeNull();
    expect(fleet.place(testRequest({ antiAffinity: 'web' }))).not.toBeNull();
    expect(fleet.place(testRequest())).not.toBeNull();
    fleet.give(first);
    expect(fleet.place(apart)).not.toBeNull();
  });

  test('while a nominated claim lies on one that is still being released', () => {
    const fleet = fleetOf(testWorker('w', {}, { devices: gpus(1) }));
    const request = testRequest({}, { resources: wants({ cpuMillis: 6000, ports: 1 }, {}) });
    const spot = fleet.place(request)!;
    const victim = hold(fleet, request, spot);
    const nominee = { ...claimOf('n' as AttemptUid, spot.worker, request.resources, spot) };
    fleet.take({ ...nominee, state: 'NOMINATED' }, request);
    const { capacity } = fleet.worker(spot.worker)!;
    expect(capacity).toMatchObject({ cpuFree: -4000, deviceFree: [-1000] });
    expect(fleet.place(testRequest())).toBeNull();
    fleet.give(victim);
    expect(capacity).toMatchObject({ cpuFree: 2000, deviceFree: [0] });
    expect([...capacity.portsTaken]).toEqual(spot.ports);
    expect(fleet.place(testRequest())).not.toBeNull();
  });
});

describe('of the workers that fit', () => {
  test('one that satisfies what is preferred comes first, others when it is full', () => {
    const fleet = fleetOf(
      testWorker('plain'),
      testWorker('b', { attributes: { zone: 'b' } }, { cpuMillis: 1000 }),
      testWorker('a', { attributes: { zone: 'a' } }, { cpuMillis: 1000 }),
    );
    const request = testRequest({ constraints: [zone('a', true)] });
    expect(put(fleet, request)).toBe('a');
    expect(['plain', 'b']).toContain(put(fleet, request));
  });

  test('the cheaper comes first', () => {
    const fleet = fleetOf(
      testWorker('rented', { cpuHourMicros: 5 }),
      testWorker('own', {}, { cpuMillis: 1000 }),
    );
    expect([put(fleet, testRequest()), put(fleet, testRequest())]).toEqual(['own', 'rented']);
  });

  test('packing takes the fullest, spreading the emptiest', () => {
    const fleet = fleetOf(testWorker('w1'), testWorker('w2'), testWorker('w3'));
    const first = put(fleet, testRequest());
    expect(put(fleet, testRequest())).toBe(first);
    const spread = testRequest({ arrangement: 'spread' });
    const second = put(fleet, spread);
    const third = put(fleet, spread);
    expect(new Set([first, second, third]).size).toBe(3);
  });

  test('a share goes to the device that is in use, a spread one to another', () => {
    const fleet = fleetOf(testWorker('w', {}, { devices: gpus(3) }));
    const share = (arrangement: 'pack' | 'spread') =>
      testRequest({ arrangement }, { resources: wants({}, { share: 400 }) });
    const device = (arrangement: 'pack' | 'spread') => {
      const spot = fleet.place(share(arrangement))!;
      hold(fleet, share(arrangement), spot);
      return spot.devices[0];
    };
    expect(device('pack')).toBe(0);
    expect(device('pack')).toBe(0);
    expect(device('spread')).toBe(1);
    expect(device('spread')).toBe(2);
  });

  test('of a mixed worker only devices that match are taken', () => {
    const devices = [...gpus(2, 'L4', 24 * GIB), ...gpus(4).slice(2)];
    const fleet = fleetOf(testWorker('w', {}, { devices }));
    const large = testRequest({}, { resources: wants({}, { memoryBytes: 40 * GIB, share: 500 }) });
    expect(fleet.place(large)?.devices).toEqual([2]);
    hold(fleet, large, fleet.place(large));
    const any = testRequest({}, { resources: wants({}, { count: 3 }) });
    expect(fleet.place(any)?.devices).toEqual([0, 1, 3]);
    const two = testRequest({}, { resources: wants({}, { count: 2, memoryBytes: 40 * GIB }) });
    expect(fleet.place(two)).toBeNull();
  });
});

describe('the picture', () => {
  test('keeps claims of a worker that changes, leaves, or was not there yet', () => {
    const fleet = fleetOf(testWorker('w'));
    const request = testRequest({}, { resources: wants({ cpuMillis: 5000 }) });
    const owner = hold(fleet, request, fleet.place(request));
    const claim = fleet.worker('w' as never)?.claims.get(owner);
    fleet.setWorker(testWorker('w', {}, { cpuMillis: 9000 }));
    expect(fleet.worker('w' as never)?.capacity.cpuFree).toBe(4000);
    fleet.removeWorker('w' as never);
    expect(fleet.size).toBe(0);
    fleet.setWorker(testWorker('w'));
    expect(fleet.worker('w' as never)?.capacity.cpuFree).toBe(3000);
    const other = fleetOf();
    other.take(claim!, request);
    other.setWorker(testWorker('w'));
    expect(other.worker('w' as never)?.capacity.cpuFree).toBe(3000);
    other.take(claim!, request);
    expect(other.worker('w' as never)?.capacity.cpuFree).toBe(3000);
    other.give(owner);
    expect(other.worker('w' as never)?.capacity.cpuFree).toBe(8000);
  });

  test('says when something was freed or appeared', () => {
    const fleet = fleetOf();
    fleet.setWorker(testWorker('w', { open: false }));
    expect(fleet.freed).toBe(0);
    fleet.setWorker(testWorker('w'));
    expect(fleet.freed).toBe(1);
    const owner = hold(fleet, testRequest(), fleet.place(testRequest()));
    expect(fleet.freed).toBe(1);
    fleet.give(owner);
    fleet.give(owner);
    expect(fleet.freed).toBe(2);
  });

  test('sums what open workers have', () => {
    const fleet = fleetOf(testWorker('a', {}, { devices: gpus(2) }), testWorker('b'));
    const one = { cpuMillis: 8000, memoryMiB: 16 * 1024, deviceMillis: 0 };
    const both = { cpuMillis: 16_000, memoryMiB: 32 * 1024, deviceMillis: 2000 };
    expect(fleet.totals()).toEqual(both);
    fleet.setWorker(testWorker('a', { open: false }, { devices: gpus(2) }));
    expect(fleet.totals()).toEqual(one);
    fleet.removeWorker('a' as never);
    expect(fleet.totals()).toEqual(one);
  });

  test('accepts what fits when nothing is held, and nothing else', () => {
    const fleet = fleetOf(testWorker('w', {}, { devices: gpus(1) }));
    const worker = fleet.worker('w' as never)!;
    const request = testRequest({}, { resources: wants({}, {}) });
    put(fleet, request);
    expect(fleet.place(request)).toBeNull();
    expect(fleet.accepts(worker, request)).toBe(true);
    expect(fleet.accepts(worker, testRequest({ constraints: [zone('a')] }))).toBe(false);
    const two = testRequest({}, { resources: wants({}, { count: 2 }) });
    expect(fleet.accepts(worker, two)).toBe(false);
    fleet.setWorker(testWorker('w', { open: false }, { devices: gpus(1) }));
    expect(fleet.accepts(worker, request)).toBe(false);
  });

  test('ports go round also when the worker is drained and opened again', () => {
    const fleet = fleetOf(testWorker('w'));
    const request = testRequest({}, { resources: wants({ ports: 2 }) });
    const owner = hold(fleet, request, fleet.place(request));
    fleet.give(owner);
    fleet.setWorker(testWorker('w', { open: false }));
    fleet.setWorker(testWorker('w'));
    expect(fleet.place(request)?.ports).toEqual([102, 103]);
  });
});
