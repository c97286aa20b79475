/** What the planner needs to know of a job: its request, shared by all tasks of the same class. */
import type { PlacementRequest } from '../core/schedule/view.ts';
import { PRIORITIES, type Job, type JobSpec } from '../model/job.ts';

export function requestOf(job: Job): PlacementRequest {
  const { spec } = job;
  const ports = portsOf(spec);
  return {
    key: classKeyOf(job),
    resources: ports === spec.resources.ports ? spec.resources : { ...spec.resources, ports },
    pool: spec.pool,
    band: PRIORITIES.indexOf(spec.priority),
    gangSize: gangSizeOf(spec),
  };
}

/** Texts that users choose are quoted: no two different requests may have the same key. */
export function classKeyOf({ spec }: Job): string {
  const { cpuMillis, memoryBytes, device } = spec.resources;
  const pool = spec.pool === '' ? '' : JSON.stringify(spec.pool);
  const size = `${gangSizeOf(spec)}|${cpuMillis}|${memoryBytes}|${portsOf(spec)}`;
  const key = `${spec.priority}|${pool}|${size}`;
  if (!device) return key;
  const { kind, count, share, models } = device;
  const which = models.length === 0 ? '' : JSON.stringify(models);
  return `${key}|${kind}|${count}|${share}|${device.memoryBytes}|${which}`;
}

function gangSizeOf({ shape }: JobSpec): number {
  return shape.kind === 'gang' ? shape.size : 1;
}

/** Rank 0's port is where the other members of a gang find it. */
function portsOf({ shape, resources }: JobSpec): number {
  return shape.kind === 'gang' ? Math.max(1, resources.ports) : resources.ports;
}
