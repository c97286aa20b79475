/** For tests: workers and requests with everything filled in, and booking as a planner does it. */
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import { OPEN_TERMS, PLAIN_PLACEMENT, type PlacementSpec } from '../../model/placement.ts';
import type { Device, DeviceRequest, ResourceRequest } from '../../model/resources.ts';
import type { WorkerResources } from '../../model/resources.ts';
import { claimOf } from './capacity.ts';
import { Fleet, type Spot } from './fleet.ts';
import type { PlacementRequest, PlannerWorker } from './request.ts';

export const GIB = 2 ** 30;

export function gpus(count: number, model = 'H100', memoryBytes = 80 * GIB): Device[] {
  return Array.from({ length: count }, (_, index) => ({ index, kind: 'gpu', model, memoryBytes }));
}

export function testWorker(
  id: string,
  more: Partial<PlannerWorker> = {},
  resources: Partial<WorkerResources> = {},
): PlannerWorker {
  return {
    id: id as WorkerId,
    name: id,
    pool: 'default',
    network: 'lan',
    attributes: {},
    terms: OPEN_TERMS,
    deviceHourMicros: 0,
    cpuHourMicros: 0,
    lasts: null,
    open: true,
    ...more,
    resources: {
      cpuMillis: 8000,
      memoryBytes: 16 * GIB,
      devices: [],
      portRange: [100, 104],
      ...resources,
    },
  };
}

export function testRequest(
  placement: Partial<PlacementSpec> = {},
  more: Partial<PlacementRequest> = {},
): PlacementRequest {
  return {
    key: JSON.stringify([placement, more]),
    tenant: 'lab',
    user: 'ann',
    resources: wants(),
    placement: { ...PLAIN_PLACEMENT, ...placement },
    pool: '',
    band: 2,
    gangSize: 1,
    arrayLimit: 0,
    timeLimitMs: 0,
    graceMs: 0,
    neededMs: 0,
    ...more,
  };
}

export function wants(
  more: Partial<Omit<ResourceRequest, 'device'>> = {},
  device: Partial<DeviceRequest> | null = null,
): ResourceRequest {
  const whole: DeviceRequest = { kind: 'gpu', count: 1, share: 1000, models: [], memoryBytes: 0 };
  const filled = device && { ...whole, ...device };
  return { cpuMillis: 1000, memoryBytes: 0, ports: 0, ...more, device: filled };
}

export function fleetOf(...workers: PlannerWorker[]): Fleet {
  const fleet = new Fleet();
  for (const each of workers) fleet.setWorker(each);
  return fleet;
}

let owners = 0;

export function hold(fleet: Fleet, request: PlacementRequest, spot: Spot | null): AttemptUid {
  if (!spot) throw new Error('there is no room');
  const owner = `a${owners++}` as AttemptUid;
  fleet.take(claimOf(owner, spot.worker, request.resources, spot), request);
  return owner;
}

/** Places and books; the name of the worker. */
export function put(fleet: Fleet, request: PlacementRequest): string {
  const spot = fleet.place(request);
  hold(fleet, request, spot);
  return spot?.worker as string;
}
