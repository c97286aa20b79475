/** The policy in production: the planner's own fleet, asked and booked as the planner does. */
import { claimOf } from '../../src/core/placement/capacity.ts';
import { Fleet } from '../../src/core/placement/fleet.ts';
import type { PlacementRequest, PlannerWorker } from '../../src/core/placement/request.ts';
import type { AttemptUid, WorkerId } from '../../src/model/ids.ts';
import { OPEN_TERMS, PLAIN_PLACEMENT } from '../../src/model/placement.ts';
import type { Policy } from './experiment.ts';
import type { TraceNode, TraceTask } from './traces.ts';

const MIB = 2 ** 20;

export function drover(nodes: readonly TraceNode[]): Policy {
  const fleet = new Fleet();
  for (const [at, node] of nodes.entries()) fleet.setWorker(workerOf(node, at));
  const requests = new Map<TraceTask, PlacementRequest>();
  let owners = 0;
  return {
    place(task) {
      let request = requests.get(task);
      if (!request) requests.set(task, (request = requestOf(task)));
      const spot = fleet.place(request);
      if (!spot) return false;
      const owner = `a${owners++}` as AttemptUid;
      fleet.take(claimOf(owner, spot.worker, request.resources, spot), request);
      return true;
    },
  };
}

export function workerOf(node: TraceNode, at: number): PlannerWorker {
  const { name, model } = node;
  return {
    id: `w${at}` as WorkerId,
    name,
    pool: 'default',
    network: 'lan',
    attributes: {},
    resources: {
      cpuMillis: node.cpuMillis,
      memoryBytes: node.memoryMiB * MIB,
      devices: Array.from({ length: node.devices }, (_, index) => ({
        index,
        kind: 'gpu',
        model,
        memoryBytes: 0,
      })),
      portRange: [20_000, 29_999],
    },
    terms: OPEN_TERMS,
    deviceHourMicros: 0,
    cpuHourMicros: 0,
    lasts: null,
    open: true,
  };
}

export function requestOf(task: TraceTask): PlacementRequest {
  const { cpuMillis, memoryMiB, devices, share, models } = task;
  const device = { kind: 'gpu', count: devices, share, models, memoryBytes: 0 } as const;
  return {
    key: JSON.stringify(task),
    tenant: 'lab',
    user: 'ann',
    resources: {
      cpuMillis,
      memoryBytes: memoryMiB * MIB,
      device: devices > 0 ? device : null,
      ports: 0,
    },
    placement: PLAIN_PLACEMENT,
    pool: '',
    band: 2,
    gangSize: 1,
    arrayLimit: 0,
    timeLimitMs: 0,
    graceMs: 0,
    neededMs: 0,
  };
}
