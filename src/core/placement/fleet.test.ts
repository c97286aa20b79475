/** Where a request may go and where it goes best. */
import { describe, expect, test } from 'vitest';
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import { OPEN_TERMS, PLAIN_PLACEMENT, type PlacementSpec } from '../../model/placement.ts';
import { claimOf } from './capacity.ts';
import { Fleet, type Spot } from './fleet.ts';
import type { PlacementRequest, PlannerWorker } from './request.ts';

const GIB = 2 ** 30;

function worker(id: string, more: Partial<PlannerWorker> = {}): PlannerWorker {
  return {
    id: id as WorkerId,
    name: id,
    pool: 'default',
    network: 'lan',
    attributes: {},
    resources: { cpuMillis: 8000, memoryBytes: 16 * GIB, devices: [], portRange: [100, 104] },
    terms: OPEN_TERMS,
    deviceHourMicros: 0,
    cpuHourMicros: 0,
    open: true,
    ...more,
  };
}

function request(
  placement: Partial<PlacementSpec> = {},
  more: Partial<PlacementRequest> = {},
): PlacementRequest {
  return {
    key: JSON.stringify([placement, more]),
    tenant: 'lab',
    user: 'ann',
    resources: { cpuMillis: 1000, memoryBytes: 0, device: null, ports: 0 },
    placement: { ...PLAIN_PLACEMENT, ...placement },
    pool: '',
    band: 2,
    gangSize: 1,
    arrayLimit: 0,
    timeLimitMs: 0,
    graceMs: 0,
    ...more,
  };
}

function fleetOf(...workers: PlannerWorker[]): Fleet {
  const fleet = new Fleet();
  for (const each of workers) fleet.setWorker(each);
  return fleet;
}

let owners = 0;
function hold(fleet: Fleet, wanted: PlacementRequest, spot: Spot | null): AttemptUid {
  if (!spot) throw new Error('there is no room');
  const owner = `a${owners++}` as AttemptUid;
  fleet.take(claimOf(owner, spot.worker, wanted.resources, spot), wanted);
  return owner;
}

describe('a worker takes', () => {
  test('no second task of an anti-affinity group', () => {
    const fleet = fleetOf(worker('w1'), worker('w2'));
    const apart = request({ antiAffinity: 'db' });
    const first = hold(fleet, apart, fleet.place(apart));
    hold(fleet, apart, fleet.place(apart));
    expect(fleet.place(apart)).toBeNull();
    expect(fleet.rejections(apart)).toEqual(new Map([['anti-affinity', 2]]));
    fleet.give(first);
    expect(fleet.place(apart)).not.toBeNull();
  });
});
