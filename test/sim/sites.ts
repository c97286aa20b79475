/** The machines of the simulated cluster, and which of them may ever take a job. */
import type { PoolPolicy } from '../../src/core/placement/admission.ts';
import type { JobSpec } from '../../src/model/job.ts';
import { OPEN_TERMS, type Constraint, type WorkerTerms } from '../../src/model/placement.ts';
import type { WorkerResources } from '../../src/model/resources.ts';
import type { World } from './world.ts';

export interface Site {
  name: string;
  pool: string;
  attributes: Record<string, string>;
  /** How its agents join, where a provider made it; left out: with their pool's token. */
  rented?: { joinToken: string; instance: string; host: string };
}

export const SITES: readonly Site[] = [
  { name: 'machine0', pool: 'default', attributes: { rack: 'a', generation: '1' } },
  { name: 'machine1', pool: 'default', attributes: { rack: 'a', generation: '2' } },
  { name: 'machine2', pool: 'rented', attributes: { rack: 'b', generation: '3', spot: 'yes' } },
];

/** Of a machine that was rented: which pool it is of stands in its name. */
export function rentedName(pool: string, handle: string, rank: number): string {
  return `${pool}:${handle}:${rank}`;
}

/** Where a worker is, by what its machine calls itself. */
export function siteOf(machine: string): Site | undefined {
  const [pool = '', ...rented] = machine.split(':');
  if (rented.length > 0) return { name: machine, pool, attributes: {} };
  return SITES.find(({ name }) => name === machine);
}

export const RESOURCES: WorkerResources = {
  cpuMillis: 4000,
  memoryBytes: 0,
  devices: [0, 1].map((index) => ({ index, kind: 'gpu', model: 'A100', memoryBytes: 0 })),
  portRange: [20_000, 20_003],
};

export const NETWORK = 'lan';

/** One unit of money for a second of a device, so that a minute of work is worth counting. */
export const UNIT_MICROS = 1_000_000;
const HOUR_SECONDS = 3600;

/** Swarm: what pools demand and cost differs from seed to seed. */
export function drawPools(world: World): PoolPolicy[] {
  const terms = world.pick<WorkerTerms>([
    OPEN_TERMS,
    OPEN_TERMS,
    { ...OPEN_TERMS, interruptibleOnly: true },
    { ...OPEN_TERMS, marketplace: true },
    { ...OPEN_TERMS, tenants: ['north', 'default'] },
  ]);
  const price = (): Pick<PoolPolicy, 'deviceHourMicros' | 'cpuHourMicros'> => ({
    deviceHourMicros: world.pick([0, 1, 2]) * UNIT_MICROS * HOUR_SECONDS,
    cpuHourMicros: world.pick([0, 0, 777_777]) * HOUR_SECONDS,
  });
  return [
    { name: 'default', largestWorker: null, terms: OPEN_TERMS, ...price() },
    { name: 'rented', largestWorker: null, terms, ...price() },
  ];
}

/** Whether the machine is one that the job may use, whatever is held on it. */
export function mayUse(
  site: Site,
  pools: readonly PoolPolicy[],
  spec: Pick<JobSpec, 'pool' | 'placement'>,
  tenant: string,
): boolean {
  if (spec.pool !== '' && spec.pool !== site.pool) return false;
  const terms = pools.find(({ name }) => name === site.pool)?.terms ?? OPEN_TERMS;
  const { placement } = spec;
  if (terms.interruptibleOnly && !placement.interruptible) return false;
  if (terms.marketplace && placement.trust === 'restricted') return false;
  if (terms.tenants.length > 0 && !terms.tenants.includes(tenant)) return false;
  return placement.constraints.every((one) => one.preferred || holds(site, one));
}

/** Whether it could run if nothing else did. */
export function feasible(spec: JobSpec, tenant: string, pools: readonly PoolPolicy[]): boolean {
  const { cpuMillis, device, ports } = spec.resources;
  const gang = spec.shape.kind === 'gang';
  const alone = spec.placement.exclusive || spec.placement.antiAffinity !== '';
  const portCount = RESOURCES.portRange[1] - RESOURCES.portRange[0] + 1;
  const each = Math.min(
    alone && gang ? 1 : Number.POSITIVE_INFINITY,
    Math.floor(RESOURCES.cpuMillis / cpuMillis),
    device ? Math.floor((RESOURCES.devices.length * 1000) / (device.count * device.share)) : 9,
    Math.floor(portCount / Math.max(gang ? 1 : 0, ports)),
  );
  const usable = SITES.filter((site) => mayUse(site, pools, spec, tenant));
  const wanted = spec.shape.kind === 'gang' ? spec.shape.size : 1;
  const { locality } = spec.placement;
  if (locality === '') return usable.length * each >= wanted;
  const groups = Map.groupBy(usable, ({ attributes }) => attributes[locality]);
  return [...groups].some(([key, group]) => key !== undefined && group.length * each >= wanted);
}

function holds(site: Site, { attribute, operator, values }: Constraint): boolean {
  const all: Record<string, string> = {
    ...site.attributes,
    ...{ name: site.name, pool: site.pool, network: NETWORK },
  };
  const value = all[attribute];
  const [wanted = ''] = values;
  if (operator === 'NE') return value !== wanted;
  if (value === undefined) return false;
  if (operator === 'EXISTS') return true;
  if (operator === 'GT') return Number(value) > Number(wanted);
  if (operator === 'LT') return Number(value) < Number(wanted);
  return values.includes(value);
}
