/** What the planner needs to know of a job: its request, shared by all tasks of the same class. */
import type { PlacementRequest } from '../core/schedule/view.ts';
import { PRIORITIES, type Job } from '../model/job.ts';

export function requestOf(job: Job): PlacementRequest {
  const { spec } = job;
  const gangSize = spec.shape.kind === 'gang' ? spec.shape.size : 1;
  // Rank 0's port is where the other members of a gang find it.
  const ports = gangSize > 1 ? Math.max(1, spec.resources.ports) : spec.resources.ports;
  return {
    key: classKeyOf(job),
    resources: ports === spec.resources.ports ? spec.resources : { ...spec.resources, ports },
    pool: spec.pool,
    band: PRIORITIES.indexOf(spec.priority),
    gangSize,
  };
}

export function classKeyOf(job: Job): string {
  const { resources, pool, priority, shape } = job.spec;
  const device = resources.device;
  const gang = shape.kind === 'gang' ? shape.size : 1;
  const { cpuMillis, memoryBytes, ports } = resources;
  const plain = `${priority}|${pool}|${gang}|${cpuMillis}|${memoryBytes}|${ports}`;
  if (!device) return plain;
  const { kind, count, share, models } = device;
  return `${plain}|${kind}|${count}|${share}|${device.memoryBytes}|${models.join(',')}`;
}
