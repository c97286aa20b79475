/** What fits on a worker: by example, and against a naive model that counts from scratch. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import type { Device, ResourceRequest, WorkerResources } from '../../model/resources.ts';
import { Capacity, claimOf, matches } from './capacity.ts';

const GIB = 2 ** 30;

const gpu = (index: number, model = 'NVIDIA H100 80GB HBM3', memoryBytes = 80 * GIB): Device => ({
  index,
  kind: 'gpu',
  model,
  memoryBytes,
});

const worker = (more: Partial<WorkerResources> = {}): WorkerResources => ({
  cpuMillis: 8000,
  memoryBytes: 16 * GIB,
  devices: [gpu(0), gpu(1), gpu(4), gpu(7)],
  portRange: [100, 104],
  ...more,
});

const request = (more: Partial<ResourceRequest> = {}): ResourceRequest => ({
  cpuMillis: 1000,
  memoryBytes: 0,
  device: null,
  ports: 0,
  ...more,
});

const devices = (more: Partial<NonNullable<ResourceRequest['device']>> = {}) =>
  request({ device: { kind: 'gpu', count: 1, share: 1000, models: [], memoryBytes: 0, ...more } });

let owners = 0;
function take(capacity: Capacity, wanted: ResourceRequest): Claim {
  const fit = capacity.fit(wanted);
  if (!fit.fits) throw new Error(`short of ${fit.short}`);
  const claim = claimOf(`a${owners++}` as AttemptUid, 'w' as WorkerId, wanted, fit);
  expect(capacity.admits(claim)).toBe(true);
  capacity.take(claim);
  return claim;
}

describe('what is short is named', () => {
  test.each<[string, ResourceRequest]>([
    ['cpus', request({ cpuMillis: 8001 })],
    ['memory', request({ memoryBytes: 16 * GIB + 1 })],
    ['devices', devices({ count: 5 })],
    ['devices', devices({ kind: 'tpu' })],
    ['devices', devices({ models: ['A100'] })],
    ['devices', devices({ memoryBytes: 81 * GIB })],
    ['ports', request({ ports: 6 })],
  ])('%s', (short, wanted) => {
    expect(new Capacity(worker()).fit(wanted)).toEqual({ fits: false, short });
  });

  test('what is exactly all fits', () => {
    const capacity = new Capacity(worker());
    const all = { ...devices({ count: 4 }), cpuMillis: 8000, memoryBytes: 16 * GIB, ports: 5 };
    const claim = take(capacity, all);
    expect(claim).toMatchObject({ devices: [0, 1, 4, 7], ports: [100, 101, 102, 103, 104] });
    expect(capacity.devicesFree()).toBe(0);
    expect(capacity.fit(request({ cpuMillis: 1 }))).toEqual({ fits: false, short: 'cpus' });
  });
});

describe('devices', () => {
  test('go by their index, not by their place in the list', () => {
    const capacity = new Capacity(worker());
    take(capacity, devices({ count: 2 }));
    expect(take(capacity, devices({ count: 2 })).devices).toEqual([4, 7]);
  });

  test('models are compared without case, as a part of the name; any of several will do', () => {
    expect(matches(gpu(0), { ...devices().device!, models: ['h100'] })).toBe(true);
    expect(matches(gpu(0), { ...devices().device!, models: ['a100', 'H100 80gb'] })).toBe(true);
    expect(matches(gpu(0), { ...devices().device!, models: ['H1000'] })).toBe(false);
  });

  test('of a mixed machine only those that match are taken', () => {
    const capacity = new Capacity(worker({ devices: [gpu(0, 'L4', 24 * GIB), gpu(1), gpu(2)] }));
    expect(take(capacity, devices({ count: 2, memoryBytes: 40 * GIB })).devices).toEqual([1, 2]);
    expect(take(capacity, devices({ models: ['l4'] })).devices).toEqual([0]);
  });

  test('shares fill one device before they open another', () => {
    const capacity = new Capacity(worker({ devices: [gpu(0), gpu(1)] }));
    const picked = [400, 400, 400, 200, 600].map(
      (share) => take(capacity, devices({ share })).devices[0],
    );
    expect(picked).toEqual([0, 0, 1, 0, 1]);
    expect(capacity.deviceFree).toEqual([0, 0]);
    expect(capacity.fit(devices({ share: 1 }))).toMatchObject({ short: 'devices' });
  });

  test('a device of which a share is held is not whole', () => {
    const capacity = new Capacity(worker({ devices: [gpu(0), gpu(1)] }));
    const share = take(capacity, devices({ share: 1 }));
    expect(capacity.fit(devices({ count: 2 }))).toMatchObject({ short: 'devices' });
    expect(take(capacity, devices()).devices).toEqual([1]);
    capacity.give(share);
    expect(capacity.fit(devices())).toMatchObject({ devices: [0] });
  });
});

describe('ports', () => {
  test('go round, so that one just freed is the last to be given again', () => {
    const capacity = new Capacity(worker());
    const first = take(capacity, request({ ports: 2 }));
    expect(first.ports).toEqual([100, 101]);
    capacity.give(first);
    expect(take(capacity, request({ ports: 2 })).ports).toEqual([102, 103]);
    expect(take(capacity, request({ ports: 2 })).ports).toEqual([104, 100]);
    expect(capacity.fit(request({ ports: 2 }))).toMatchObject({ short: 'ports' });
    expect(take(capacity, request({ ports: 1 })).ports).toEqual([101]);
  });

  test('a range of one', () => {
    const capacity = new Capacity(worker({ portRange: [7, 7] }));
    const claim = take(capacity, request({ ports: 1 }));
    expect(capacity.fit(request({ ports: 1 }))).toMatchObject({ short: 'ports' });
    capacity.give(claim);
    expect(take(capacity, request({ ports: 1 })).ports).toEqual([7]);
  });
});

describe('a claim is admitted', () => {
  const claim: Claim = {
    owner: 'a' as AttemptUid,
    worker: 'w' as WorkerId,
    cpuMillis: 8000,
    memoryBytes: 0,
    devices: [4],
    share: 1000,
    ports: [100],
    state: 'HELD',
  };

  test.each<[string, Partial<Claim>]>([
    ['too many CPUs', { cpuMillis: 8001 }],
    ['too much memory', { memoryBytes: 16 * GIB + 1 }],
    ['a device there is not', { devices: [2] }],
  ])('not with %s', (_what, more) => {
    expect(new Capacity(worker()).admits({ ...claim, ...more })).toBe(false);
  });

  test('when exactly it is free, and then not twice', () => {
    const capacity = new Capacity(worker());
    expect(capacity.admits(claim)).toBe(true);
    capacity.take({ ...claim, cpuMillis: 0 });
    expect(capacity.admits({ ...claim, devices: [] })).toBe(false);
    expect(capacity.admits({ ...claim, ports: [] })).toBe(false);
    expect(capacity.admits({ ...claim, ports: [], devices: [7] })).toBe(true);
  });
});

test('takes and gives in any order: never overbooked, and all given back is all free', () => {
  const wanted = fc.record({
    cpuMillis: fc.integer({ min: 0, max: 4000 }),
    memoryBytes: fc.integer({ min: 0, max: 8 }).map((n) => n * GIB),
    ports: fc.nat(3),
    device: fc.option(
      fc
        .record({ count: fc.integer({ min: 1, max: 3 }), share: fc.constantFrom(1000, 500, 300) })
        .map(({ count, share }) => devices({ count: share < 1000 ? 1 : count, share }).device!),
    ),
  });
  const steps = fc.array(fc.oneof(wanted, fc.nat(20)), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (script) => {
      const capacity = new Capacity(worker());
      const held: Claim[] = [];
      for (const step of script) {
        if (typeof step === 'number') {
          const [gone] = held.splice(step, 1);
          if (gone) capacity.give(gone);
        } else if (capacity.fit(step).fits) held.push(take(capacity, step));
        expect({
          cpuFree: capacity.cpuFree,
          memoryFree: capacity.memoryFree,
          deviceFree: capacity.deviceFree,
          ports: [...capacity.portsTaken].toSorted((a, b) => a - b),
        }).toEqual(countedAnew(held));
      }
      for (const claim of held) capacity.give(claim);
      expect(capacity).toMatchObject({ cpuFree: 8000, memoryFree: 16 * GIB });
      expect(capacity.devicesFree()).toBe(4);
      expect(capacity.portsTaken.size).toBe(0);
    }),
  );
});

/** Also asserts that nothing is held twice or beyond what there is. */
function countedAnew(held: Claim[]) {
  const sum = (of: (claim: Claim) => number): number => held.reduce((all, one) => all + of(one), 0);
  const ports = held.flatMap((claim) => claim.ports);
  const deviceFree = worker().devices.map(
    ({ index }) => 1000 - sum((claim) => (claim.devices.includes(index) ? claim.share : 0)),
  );
  const cpuFree = 8000 - sum((claim) => claim.cpuMillis);
  const memoryFree = 16 * GIB - sum((claim) => claim.memoryBytes);
  expect(new Set(ports).size).toBe(ports.length);
  expect(Math.min(cpuFree, memoryFree, ...deviceFree)).toBeGreaterThanOrEqual(0);
  return { cpuFree, memoryFree, deviceFree, ports: ports.toSorted((a, b) => a - b) };
}
