/**
 * A job's spec on its way: only what differs from the defaults. Rows and messages between threads
 * carry this form; it is a tenth of the whole. The defaults below are part of the stored format:
 * never change one, a row written without it means it.
 */
import type { After, JobSpec } from './job.ts';
import type { JobParts } from './jobParts.ts';
import { PLAIN_PLACEMENT, type PlacementSpec } from './placement.ts';
import type { DeviceRequest, ResourceRequest } from './resources.ts';

const DEFAULT_SPEC: Omit<
  JobSpec,
  'command' | 'resources' | 'env' | 'labels' | 'placement' | 'after' | 'shape' | keyof JobParts
> = {
  name: '',
  workdir: '',
  pool: '',
  priority: 'batch',
  retries: 0,
  maxInterruptions: 100,
  timeLimitMs: 0,
  startWithinMs: 0,
  graceMs: 10_000,
  attemptLeaseMs: 0,
  maxCostMicros: 0,
};

const DEFAULT_RESOURCES: Omit<ResourceRequest, 'device'> = {
  cpuMillis: 1000,
  memoryBytes: 0,
  ports: 0,
};

const DEFAULT_DEVICE: DeviceRequest = {
  kind: 'gpu',
  count: 1,
  share: 1000,
  models: [],
  memoryBytes: 0,
};

/** Shared by all specs that have nothing else: specs are never changed, and there are many. */
export const DEFAULT_PARTS: Readonly<
  Pick<JobSpec, 'env' | 'labels' | 'after' | 'resources' | 'shape' | 'placement'>
> = Object.freeze({
  env: Object.freeze({}),
  labels: Object.freeze({}),
  after: Object.freeze([]) as unknown as After[],
  resources: Object.freeze({ ...DEFAULT_RESOURCES, device: null }),
  shape: Object.freeze({ kind: 'single' }),
  placement: PLAIN_PLACEMENT,
});

type Packed = Partial<Omit<JobSpec, 'resources' | 'placement'>> & {
  placement?: Partial<PlacementSpec>;
  resources?: Partial<Omit<ResourceRequest, 'device'>> & { device?: Partial<DeviceRequest> };
};

type Whole = Packed & { command: string[] };

/** Equal neighbours as one with a count: many a submission is one job many times over. */
export function packSpecs(specs: readonly JobSpec[]): string {
  const lines: string[] = [];
  let last = '';
  let count = 0;
  for (const spec of specs) {
    const one = JSON.stringify(pack(spec));
    if (one !== last) {
      if (count > 0) lines.push(count + last);
      last = one;
      count = 0;
    }
    count++;
  }
  if (count > 0) lines.push(count + last);
  return lines.join('\n');
}

/** Equal ones are one object: specs are never changed. */
export function unpackSpecs(text: string): JobSpec[] {
  const specs: JobSpec[] = [];
  unpackedCharacters += text.length;
  if (unpackedCharacters > UNPACKED_CHARACTERS) {
    unpacked.clear();
    unpackedCharacters = text.length;
  }
  for (const line of text === '' ? [] : text.split('\n')) {
    const brace = line.indexOf('{');
    const one = line.slice(brace);
    const spec = unpackSpec(one);
    unpacked.set(spec, one);
    for (let n = Number(line.slice(0, brace)); n > 0; n--) specs.push(spec);
  }
  return specs;
}

/**
 * A spec that came from another thread mostly goes into a row at once, in the same form. What was
 * refused stays here until so much more has come.
 */
const UNPACKED_CHARACTERS = 8 * 1024 * 1024;
const unpacked = new Map<JobSpec, string>();
let unpackedCharacters = 0;

let lastPacked: { spec: JobSpec; text: string } | null = null;

export function packSpec(spec: JobSpec): string {
  if (lastPacked?.spec === spec) return lastPacked.text;
  const known = unpacked.get(spec);
  unpacked.delete(spec);
  lastPacked = { spec, text: known ?? JSON.stringify(pack(spec)) };
  return lastPacked.text;
}

export function unpackSpec(text: string): JobSpec {
  return unpack(JSON.parse(text) as Whole);
}

function pack(spec: JobSpec): Packed {
  const packed: Packed = { command: spec.command };
  packScalars(spec, packed);
  if (spec.shape.kind !== 'single') packed.shape = spec.shape;
  if (!isEmpty(spec.env)) packed.env = spec.env;
  if (!isEmpty(spec.labels)) packed.labels = spec.labels;
  if (spec.after.length > 0) packed.after = spec.after;
  const placement = packPlacement(spec.placement);
  if (placement) packed.placement = placement;
  const { cpuMillis, memoryBytes, ports, device } = spec.resources;
  if (device || cpuMillis !== DEFAULT_RESOURCES.cpuMillis || memoryBytes || ports) {
    packed.resources = { cpuMillis, memoryBytes, ports, ...(device && { device }) };
  }
  copyParts(spec, packed);
  return packed;
}

/** Spelled out: a loop over names takes as long as all the rest, and a call has 1,000 specs. */
function packScalars(spec: JobSpec, packed: Packed): void {
  if (spec.name !== DEFAULT_SPEC.name) packed.name = spec.name;
  if (spec.workdir !== DEFAULT_SPEC.workdir) packed.workdir = spec.workdir;
  if (spec.pool !== DEFAULT_SPEC.pool) packed.pool = spec.pool;
  if (spec.priority !== DEFAULT_SPEC.priority) packed.priority = spec.priority;
  if (spec.retries !== DEFAULT_SPEC.retries) packed.retries = spec.retries;
  if (spec.maxInterruptions !== DEFAULT_SPEC.maxInterruptions) {
    packed.maxInterruptions = spec.maxInterruptions;
  }
  if (spec.timeLimitMs !== DEFAULT_SPEC.timeLimitMs) packed.timeLimitMs = spec.timeLimitMs;
  if (spec.startWithinMs !== DEFAULT_SPEC.startWithinMs) packed.startWithinMs = spec.startWithinMs;
  if (spec.graceMs !== DEFAULT_SPEC.graceMs) packed.graceMs = spec.graceMs;
  if (spec.attemptLeaseMs !== DEFAULT_SPEC.attemptLeaseMs) {
    packed.attemptLeaseMs = spec.attemptLeaseMs;
  }
  if (spec.maxCostMicros !== DEFAULT_SPEC.maxCostMicros) packed.maxCostMicros = spec.maxCostMicros;
}

function packPlacement(placement: PlacementSpec): Partial<PlacementSpec> | null {
  if (placement === PLAIN_PLACEMENT) return null;
  const packed: Partial<PlacementSpec> = {};
  const { constraints, ...scalars } = placement;
  if (constraints.length > 0) packed.constraints = constraints;
  let name: keyof typeof scalars;
  for (name in scalars) {
    if (scalars[name] !== PLAIN_PLACEMENT[name]) Object.assign(packed, { [name]: scalars[name] });
  }
  return isEmpty(packed) ? null : packed;
}

function unpack(packed: Whole): JobSpec {
  const { resources } = packed;
  const device = resources?.device ? { ...DEFAULT_DEVICE, ...resources.device } : null;
  const spec: JobSpec = {
    name: packed.name ?? DEFAULT_SPEC.name,
    command: packed.command,
    env: packed.env ?? DEFAULT_PARTS.env,
    workdir: packed.workdir ?? DEFAULT_SPEC.workdir,
    resources: resources ? { ...DEFAULT_RESOURCES, ...resources, device } : DEFAULT_PARTS.resources,
    shape: packed.shape ?? DEFAULT_PARTS.shape,
    pool: packed.pool ?? DEFAULT_SPEC.pool,
    priority: packed.priority ?? DEFAULT_SPEC.priority,
    retries: packed.retries ?? DEFAULT_SPEC.retries,
    maxInterruptions: packed.maxInterruptions ?? DEFAULT_SPEC.maxInterruptions,
    timeLimitMs: packed.timeLimitMs ?? DEFAULT_SPEC.timeLimitMs,
    startWithinMs: packed.startWithinMs ?? DEFAULT_SPEC.startWithinMs,
    graceMs: packed.graceMs ?? DEFAULT_SPEC.graceMs,
    attemptLeaseMs: packed.attemptLeaseMs ?? DEFAULT_SPEC.attemptLeaseMs,
    labels: packed.labels ?? DEFAULT_PARTS.labels,
    placement: packed.placement ? { ...PLAIN_PLACEMENT, ...packed.placement } : PLAIN_PLACEMENT,
    after: packed.after ?? DEFAULT_PARTS.after,
    maxCostMicros: packed.maxCostMicros ?? DEFAULT_SPEC.maxCostMicros,
  };
  copyParts(packed, spec);
  return spec;
}

function copyParts(from: JobParts, to: JobParts): void {
  if (from.code) to.code = from.code;
  if (from.inputs) to.inputs = from.inputs;
  if (from.environment) to.environment = from.environment;
  if (from.checkpoint) to.checkpoint = from.checkpoint;
  if (from.secrets) to.secrets = from.secrets;
  if (from.rules) to.rules = from.rules;
  if (from.annotations) to.annotations = from.annotations;
}

function isEmpty(record: object): boolean {
  for (const _ in record) return false;
  return true;
}
