/** What the planner needs to know of a job: its request, shared by all tasks of the same class. */
import type { PlacementRequest } from '../core/placement/request.ts';
import { PRIORITIES, type Job, type JobSpec } from '../model/job.ts';
import type { InputSpec } from '../model/jobParts.ts';
import {
  CONTAINERS,
  PLAIN_PLACEMENT,
  type Constraint,
  type PlacementSpec,
} from '../model/placement.ts';

/** Whose it is and what it asks for. */
type Asked = Pick<Job, 'tenant' | 'owner' | 'spec'>;

export function requestOf(job: Asked): PlacementRequest {
  const { spec } = job;
  const ports = portsOf(spec);
  return {
    key: classKeyOf(job),
    tenant: job.tenant,
    user: job.owner,
    placement: placementOf(spec),
    resources: ports === spec.resources.ports ? spec.resources : { ...spec.resources, ports },
    pool: spec.pool,
    band: PRIORITIES.indexOf(spec.priority),
    gangSize: gangSizeOf(spec),
    arrayLimit: arrayLimitOf(spec),
    timeLimitMs: spec.timeLimitMs,
    graceMs: spec.graceMs,
    neededMs: neededMsOf(spec),
  };
}

/** Less than this is not worth the start of what can go on elsewhere. */
const SHORTEST_SLICE_MS = 5 * 60_000;

/** What is checkpointed can be cut anywhere; the rest must end before its machine does. */
function neededMsOf({ checkpoint, timeLimitMs, graceMs }: JobSpec): number {
  if (checkpoint) return Math.min(timeLimitMs || SHORTEST_SLICE_MS, SHORTEST_SLICE_MS) + graceMs;
  return timeLimitMs > 0 ? timeLimitMs + graceMs : 0;
}

/** What the rest of the spec demands of a worker, beside what was asked for as such. */
function placementOf({ placement, environment }: JobSpec): PlacementSpec {
  if (!environment?.image) return placement;
  return { ...placement, constraints: [...placement.constraints, STARTS_IMAGES] };
}

const STARTS_IMAGES: Constraint = Object.freeze({
  attribute: CONTAINERS,
  operator: 'EXISTS',
  values: [],
  preferred: false,
});

const hashesOf = new WeakMap<InputSpec[], string[] | null>();

/** Of inputs that a worker may hold by the same name; null: there are none, as for most jobs. */
export function inputHashesOf({ inputs }: JobSpec): string[] | null {
  if (!inputs) return null;
  let hashes = hashesOf.get(inputs);
  if (hashes === undefined) {
    const named = inputs.map(({ uri, hash }) => hash || NAMED_BY_HASH.exec(uri)?.[1]);
    const known = named.filter((hash) => hash !== undefined);
    hashesOf.set(inputs, (hashes = known.length > 0 ? known : null));
  }
  return hashes;
}

const NAMED_BY_HASH = /^(?:blob|tree):(sha256:[0-9a-f]{64})$/;

let last: { tenant: string; owner: string; spec: JobSpec; key: string } | null = null;

/** Jobs submitted together mostly ask for the same; then they share the key's text too. */
export function classKeyOf({ tenant, owner, spec }: Asked): string {
  if (last?.tenant !== tenant || last.owner !== owner || !asksTheSame(last.spec, spec)) {
    last = { tenant, owner, spec, key: keyOf(tenant, owner, spec) };
  }
  return last.key;
}

/** In all that the key is made of. Parts left to their defaults are the same object everywhere. */
function asksTheSame(a: JobSpec, b: JobSpec): boolean {
  return (
    a === b ||
    (a.resources === b.resources &&
      a.placement === b.placement &&
      a.shape === b.shape &&
      a.pool === b.pool &&
      a.priority === b.priority &&
      a.timeLimitMs === b.timeLimitMs &&
      a.graceMs === b.graceMs &&
      !a.environment?.image === !b.environment?.image &&
      !a.checkpoint === !b.checkpoint)
  );
}

/** Texts that users choose are quoted: no two different requests may have the same key. */
function keyOf(tenant: string, owner: string, spec: JobSpec): string {
  const { cpuMillis, memoryBytes, device } = spec.resources;
  const { timeLimitMs, graceMs } = spec;
  const who = `${JSON.stringify(tenant)}${JSON.stringify(owner)}`;
  const pool = spec.pool === '' ? '' : JSON.stringify(spec.pool);
  const size = `${gangSizeOf(spec)}|${cpuMillis}|${memoryBytes}|${portsOf(spec)}`;
  let key = `${who}|${spec.priority}|${pool}|${size}|${timeLimitMs}|${graceMs}`;
  const limit = arrayLimitOf(spec);
  if (limit > 0) key += `|%${limit}`;
  if (spec.environment?.image) key += '|image';
  if (spec.checkpoint) key += '|checkpoint';
  if (device) {
    const { kind, count, share, models } = device;
    const which = models.length === 0 ? '' : JSON.stringify(models);
    key += `|${kind}|${count}|${share}|${device.memoryBytes}|${which}`;
  }
  return isPlain(spec.placement) ? key : `${key}|${JSON.stringify(spec.placement)}`;
}

function isPlain(placement: PlacementSpec): boolean {
  if (placement === PLAIN_PLACEMENT) return true;
  if (placement.constraints.length > 0) return false;
  let name: keyof PlacementSpec;
  for (name in PLAIN_PLACEMENT) {
    if (name !== 'constraints' && placement[name] !== PLAIN_PLACEMENT[name]) return false;
  }
  return true;
}

function gangSizeOf({ shape }: JobSpec): number {
  return shape.kind === 'gang' ? shape.size : 1;
}

/** Rank 0's port is where the other members of a gang find it. */
function portsOf({ shape, resources }: JobSpec): number {
  return shape.kind === 'gang' ? Math.max(1, resources.ports) : resources.ports;
}

function arrayLimitOf({ shape }: JobSpec): number {
  return shape.kind === 'array' ? shape.limit : 0;
}
