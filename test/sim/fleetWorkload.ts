/** A day of a large, busy fleet, drawn from a seed: what `make sim-fleet` runs. */
import { freePool } from '../../src/core/placement/admission.ts';
import type { Fleet, FleetPool, WorkerGroup } from '../../src/control/simulate/fleet.ts';
import type { SimulatedJob } from '../../src/control/simulate/workload.ts';
import { seededRandom, type Random } from '../../src/lib/random.ts';
import type { JobSpec, Priority } from '../../src/model/job.ts';
import { jobSpec, type SubmittedSpec } from '../../src/protocol/jobSpec.ts';

const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const GIB = 2 ** 30;
const TENANTS = 100;
const USERS = 5;
/** The day begins with a queue, as days do; the rest comes evenly. */
const WAITING_AT_FIRST = 0.4;
/** Of the devices there are, over the whole day: there is a queue, and not all of it is done. */
const LOAD = 1.3;
const SIGMA = 1.2;
/** Machines of one fabric. */
const NETWORK_WORKERS = 64;

interface Shape {
  pool: string;
  share: number;
  cpus: number;
  memoryGib: number;
  devices: number;
  model: string;
  deviceHour: number;
}

const SHAPES: Shape[] = [
  {
    pool: 'h100',
    share: 0.1,
    cpus: 128,
    memoryGib: 2048,
    devices: 8,
    model: 'H100',
    deviceHour: 2.5,
  },
  {
    pool: 'a100',
    share: 0.25,
    cpus: 96,
    memoryGib: 1024,
    devices: 8,
    model: 'A100',
    deviceHour: 1.5,
  },
  { pool: 'l4', share: 0.3, cpus: 48, memoryGib: 192, devices: 4, model: 'L4', deviceHour: 0.5 },
  { pool: 'cpu', share: 0.35, cpus: 64, memoryGib: 256, devices: 0, model: '', deviceHour: 0 },
];

export function largeFleet(workers: number): Fleet {
  const pools = SHAPES.map((shape): FleetPool => {
    const { cpus, memoryGib, devices, model } = shape;
    const resources = {
      cpuMillis: cpus * 1000,
      memoryBytes: memoryGib * GIB,
      devices: Array.from({ length: devices }, (_, index) => ({
        index,
        kind: 'gpu' as const,
        model,
        memoryBytes: 80 * GIB,
      })),
      portRange: [20_000, 29_999] as [number, number],
    };
    const count = Math.max(1, Math.round(workers * shape.share));
    const groups: WorkerGroup[] = [];
    for (let from = 0; from < count; from += NETWORK_WORKERS) {
      const network = `${shape.pool}-${from / NETWORK_WORKERS}`;
      const size = Math.min(NETWORK_WORKERS, count - from);
      groups.push({ count: size, resources, network, attributes: {} });
    }
    const policy = { ...freePool(shape.pool), deviceHourMicros: shape.deviceHour * 1_000_000 };
    return { policy, groups, failEveryMs: 0, backAfterMs: 0 };
  });
  return { pools, budgets: [] };
}

interface Kind {
  share: number;
  spec: Omit<SubmittedSpec, 'command'>;
}

const device = (count: number, models: string[], share = 1000) => ({ count, models, share });
const ask = (cpus: number, memoryGib: number, gpu?: ReturnType<typeof device>) => ({
  cpuMillis: cpus * 1000,
  memoryBytes: memoryGib * GIB,
  device: gpu ?? null,
});

/** As clusters that publish traces run it: mostly small jobs, most of the use by the large. */
const KINDS: Kind[] = [
  { share: 0.25, spec: { resources: ask(2, 8) } },
  { share: 0.15, spec: { resources: ask(16, 64) } },
  { share: 0.1, spec: { resources: ask(4, 16, device(1, [], 500)) } },
  { share: 0.2, spec: { resources: ask(8, 32, device(1, [])) } },
  { share: 0.134, spec: { resources: ask(8, 32, device(1, ['L4'])) } },
  { share: 0.1, spec: { resources: ask(32, 192, device(4, ['A100', 'H100'])) } },
  { share: 0.06, spec: { resources: ask(64, 512, device(8, ['A100'])) } },
  { share: 0.005, spec: { resources: ask(64, 512, device(8, ['H100'])), shape: gang(4) } },
  { share: 0.001, spec: { resources: ask(64, 512, device(8, ['H100'])), shape: gang(16) } },
];

function gang(size: number) {
  return { kind: 'gang' as const, size };
}

const BANDS: { band: Priority; share: number }[] = [
  { band: 'production', share: 0.1 },
  { band: 'interactive', share: 0.2 },
  { band: 'batch', share: 0.7 },
];

export function* largeWorkload(
  jobs: number,
  workers: number,
  seed: number,
): Generator<SimulatedJob> {
  const random = seededRandom(seed);
  const specs = KINDS.map(({ spec }) =>
    BANDS.map(({ band }) => jobSpec.parse({ command: ['x'], ...spec, priority: band })),
  );
  const meanMs = meanDuration(jobs, workers);
  const medianMs = meanMs / Math.exp(SIGMA ** 2 / 2);
  const first = Math.round(jobs * WAITING_AT_FIRST);
  for (let i = 0; i < jobs; i++) {
    const bySpec = pick(KINDS, random.next());
    const byBand = pick(BANDS, random.next());
    const tenant = Math.floor(TENANTS * random.next() ** 2);
    const durationMs = Math.round(medianMs * Math.exp(SIGMA * normal(random)));
    yield {
      atMs: i < first ? 0 : Math.round(((i - first) / (jobs - first)) * DAY_MS),
      tenant: `tenant${tenant}`,
      user: `user${Math.floor(USERS * random.next())}`,
      spec: specs[bySpec]?.[byBand] as JobSpec,
      durationMs: Math.min(DAY_MS, Math.max(1000, durationMs)),
      exitCode: 0,
      failures: 0,
      checkpointMs: 0,
      remembered: null,
      after: [],
    };
  }
}

/** So long that all jobs together want LOAD of the devices for a day. */
function meanDuration(jobs: number, workers: number): number {
  const devices = SHAPES.reduce((sum, one) => sum + workers * one.share * one.devices, 0);
  const each = KINDS.reduce((sum, { share, spec }) => {
    const { device: wanted } = spec.resources ?? {};
    const members = spec.shape?.kind === 'gang' ? spec.shape.size : 1;
    const count = ((wanted?.count ?? 0) * (wanted?.share ?? 0)) / 1000;
    return sum + share * members * count;
  }, 0);
  return (LOAD * devices * DAY_MS) / (jobs * each);
}

function pick(parts: readonly { share: number }[], at: number): number {
  let left = at;
  for (const [index, { share }] of parts.entries()) {
    left -= share;
    if (left < 0) return index;
  }
  return parts.length - 1;
}

function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
  return radius * Math.cos(2 * Math.PI * random.next());
}
