/** Whether a pool's machines could take some work, and what it would cost there. */
import type { WorkerId } from '../../model/ids.ts';
import type { ResourceRequest, WorkerResources } from '../../model/resources.ts';
import { termsWords, wordsOf } from '../explain/never.ts';
import { hourMicros } from '../money.ts';
import { preference, satisfies, tooSmall, unsuitable } from '../placement/constraints.ts';
import type { PlacementRequest, PlannerWorker } from '../placement/request.ts';
import type { CapacityPool } from './capacity.ts';
import { tooLong, tooSmallWords, unsuited, type PoolReason } from './reasons.ts';

/** What a pool is to a request, whatever it has just now. */
export interface Standing {
  /** Why its machines are not for such work at all, whatever their size; null: they are. */
  closed: PoolReason | null;
  /** Why a new one would not do; null: it would. */
  refusal: PoolReason | null;
  /** As workers are chosen too: more of what is preferred first, then cheaper. */
  preference: number;
  priceMicros: number;
  neededMs: number;
  /** What a new worker is taken to bring. */
  brings: WorkerResources;
}

export function standingOf(
  pool: CapacityPool,
  request: PlacementRequest,
  exact = exactly(request.resources),
): Standing {
  const brings = pool.mode === 'agents' && pool.size ? pool.size : exact;
  const most = pool.mode === 'agents' ? pool.size : pool.largest;
  const machine = machineOf(pool, most ?? exact);
  const closed = closedTo(pool, machine, request);
  return {
    closed,
    refusal: closed ?? refusalOf(pool, machine, request),
    preference: preference(machine, request),
    priceMicros: priceOf(pool, request.resources),
    neededMs: neededMs(pool, request),
    brings,
  };
}

/** The largest worker that the pool would bring. Its name is not known before. */
function machineOf(pool: CapacityPool, resources: WorkerResources): PlannerWorker {
  return {
    id: '' as WorkerId,
    name: '',
    pool: pool.name,
    network: pool.network ?? '',
    attributes: pool.attributes,
    resources,
    terms: pool.terms,
    deviceHourMicros: pool.deviceHourMicros,
    cpuHourMicros: pool.cpuHourMicros,
    // How long machines live is told by the pool, with words of its own.
    // Whether its machines live long enough is told apart below, in words of its own.
    lasts: null,
    open: true,
  };
}

/** A worker that has what is asked for and nothing else. */
export function exactly({
  cpuMillis,
  memoryBytes,
  device,
  ports,
}: ResourceRequest): WorkerResources {
  const devices = Array.from({ length: device?.count ?? 0 }, (_, index) => ({
    index,
    kind: device?.kind ?? ('gpu' as const),
    model: device?.models[0] ?? '',
    memoryBytes: device?.memoryBytes ?? 0,
  }));
  return { cpuMillis, memoryBytes, devices, portRange: [1, ports] };
}

function closedTo(
  pool: CapacityPool,
  machine: PlannerWorker,
  request: PlacementRequest,
): PoolReason | null {
  switch (unsuitable(machine, request)) {
    case 'pool':
      return unsuited(pool, `it asks for pool ${request.pool}`);
    case 'terms':
      return unsuited(pool, `its machines do not take it: ${termsWords([machine], request)}`);
    case 'constraint': {
      const missing = request.placement.constraints.find(
        (each) => !each.preferred && !satisfies(machine, each),
      );
      return unsuited(pool, `its machines are not known to have ${missing && wordsOf(missing)}`);
    }
    case 'closed':
    // Of the pool, below.
    case 'ends':
    case null:
      break;
  }
  const needed = neededMs(pool, request);
  if (pool.longestMs > 0 && needed > pool.longestMs) return tooLong(pool, needed);
  return request.gangSize > 1 ? closedToGang(pool, request) : null;
}

/**
 * Members of a gang must reach each other, and share what they ask to share. Workers of one
 * instance do.
 */
function closedToGang(pool: CapacityPool, { placement }: PlacementRequest): PoolReason | null {
  if (pool.network === null && pool.mode === 'agents') {
    return unsuited(pool, 'its machines are not known to reach each other (network)');
  }
  const { locality } = placement;
  if (locality === '' || locality === 'network' || locality === 'pool') return null;
  if (Object.hasOwn(pool.attributes, locality)) return null;
  return unsuited(pool, `its machines are not known to share one ${locality}`);
}

function refusalOf(
  pool: CapacityPool,
  machine: PlannerWorker,
  request: PlacementRequest,
): PoolReason | null {
  if (pool.mode === 'job' && request.gangSize > 1 && !pool.gangs) {
    return unsuited(pool, 'each of its instances is one machine for one task, and this is a gang');
  }
  const short = tooSmall(machine, request);
  return short ? unsuited(pool, tooSmallWords(short)) : null;
}

/** Nothing known of it: what the operator expects of such work. */
function neededMs(pool: CapacityPool, request: PlacementRequest): number {
  return request.neededMs > 0 ? request.neededMs : pool.assumedJobMs;
}

function priceOf(pool: CapacityPool, { cpuMillis, device }: ResourceRequest): number {
  return hourMicros(device ? device.count * device.share : 0, cpuMillis, pool);
}
