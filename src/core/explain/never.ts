/** What no worker that has joined could ever take: what is missing, and what would help. */
import { CONTAINERS, INSIDE_CONTAINER, type Constraint } from '../../model/placement.ts';
import { matches } from '../placement/capacity.ts';
import { satisfies, tooSmall, unsuitable } from '../placement/constraints.ts';
import type { Fleet } from '../placement/fleet.ts';
import type { PlacementRequest, PlannerWorker } from '../placement/request.ts';
import { count, gigabytes } from './words.ts';

export interface Never {
  sentence: string;
  suggestions: string[];
}

/** Null when some worker could take one, if nothing else ran there. */
export function neverFits(fleet: Fleet, request: PlacementRequest): Never | null {
  const inPool: PlannerWorker[] = [];
  for (const worker of fleet.workers()) {
    if (fleet.accepts(worker, request)) return null;
    if (request.pool === '' || worker.info.pool === request.pool) inPool.push(worker.info);
  }
  const suggestions = elsewhere(fleet, request);
  const where = request.pool === '' ? '' : ` in pool ${request.pool}`;
  const said = (sentence: string, more: string[] = []): Never => ({
    sentence,
    suggestions: [...more, ...suggestions],
  });
  if (inPool.length === 0) {
    return said(`no worker has joined${where}`, [`join a worker${where}`]);
  }
  const open = inPool.filter((info) => info.open);
  if (open.length === 0) {
    const all = inPool.length === 1 ? 'the only worker' : `all ${inPool.length} workers`;
    const are = inPool.length === 1 ? 'is' : 'are';
    return said(`${all}${where} ${are} draining or out of contact`);
  }
  const shut = inPool.filter((info) => !info.open && couldTake({ ...info, open: true }, request));
  if (shut.length > 0) {
    const which = shut.length === 1 ? shut[0]?.name : `${shut.length} workers`;
    const are = shut.length === 1 ? 'is' : 'are';
    return said(`${which} could take it${where}, but ${are} draining or out of contact`, [
      'put workers back to work: `drover workers undrain`',
    ]);
  }
  const missing = request.placement.constraints.find(
    (constraint) => !constraint.preferred && !open.some((info) => satisfies(info, constraint)),
  );
  if (missing?.attribute === CONTAINERS) return noContainers(open, where, said);
  if (missing) return said(`no worker${where} has ${wordsOf(missing)}`);
  const suitable = open.filter((info) => !unsuitable(info, request));
  if (suitable.length === 0) {
    const terms = open.some((info) => unsuitable(info, request) === 'terms');
    const ends = !terms && open.some((info) => unsuitable(info, request) === 'ends');
    if (ends) return said(`no worker${where} lasts long enough for it`);
    return said(
      terms
        ? `no worker${where} takes such work: ${termsWords(open, request)}`
        : `no worker${where} has all the attributes asked for`,
    );
  }
  return tooLarge(suitable, request, where, said);
}

/** Where workers are containers themselves, their image was chosen with the instance. */
function noContainers(
  open: PlannerWorker[],
  where: string,
  said: (sentence: string, more: string[]) => Never,
): Never {
  const inside = open.filter((info) => Object.hasOwn(info.attributes, INSIDE_CONTAINER)).length;
  const are = inside === open.length ? 'they are' : `${inside} of ${open.length} are`;
  const why =
    inside > 0 ? `; ${are} themselves containers, whose image is a matter of the instance` : '';
  return said(`no worker${where} can start images${why}`, [
    'join a worker with podman, docker, Apptainer or enroot',
    'leave the image out',
  ]);
}

function couldTake(info: PlannerWorker, request: PlacementRequest): boolean {
  return !unsuitable(info, request) && !tooSmall(info, request);
}

function tooLarge(
  workers: PlannerWorker[],
  request: PlacementRequest,
  where: string,
  said: (sentence: string, more?: string[]) => Never,
): Never {
  const { device, cpuMillis, memoryBytes, ports } = request.resources;
  const largest = (of: (info: PlannerWorker) => number): number =>
    workers.reduce((most, info) => Math.max(most, of(info)), 0);
  const devices = device
    ? largest((info) => info.resources.devices.filter((each) => matches(each, device)).length)
    : 0;
  const asked: string[] = [];
  const has: string[] = [];
  const compare = (needed: number, there: number, words: (amount: number) => string): void => {
    if (needed <= there) return;
    asked.push(words(needed));
    has.push(words(there));
  };
  if (device) {
    const model = device.models.length > 0 ? device.models.join(' or ') : device.kind;
    const memory = device.memoryBytes > 0 ? ` with ${gigabytes(device.memoryBytes)}` : '';
    compare(device.count, devices, (amount) => `${amount} ${model}${memory}`);
  }
  const cpus = largest((info) => info.resources.cpuMillis);
  compare(cpuMillis, cpus, (amount) => count(amount / 1000, 'CPU'));
  const memory = largest((info) => info.resources.memoryBytes);
  compare(memoryBytes, memory, (amount) => `${gigabytes(amount)} of memory`);
  const range = largest(({ resources: { portRange } }) => portRange[1] - portRange[0] + 1);
  compare(ports, range, (amount) => count(amount, 'port'));
  if (asked.length === 0) {
    const short = [...new Set(workers.map((info) => tooSmall(info, request)))].join(' or ');
    return said(`no worker${where} has all of it at once: each has too few ${short}`);
  }
  const what = asked.join(' and ');
  return said(`it needs a worker with ${what}${where}; the largest has ${has.join(' and ')}`, [
    `join a worker with ${what}${where}`,
    `ask for at most ${has.join(' and ')}`,
  ]);
}

/** Where it could run without its wish for a pool. */
function elsewhere(fleet: Fleet, request: PlacementRequest): string[] {
  if (request.pool === '') return [];
  const anywhere = { ...request, pool: '' };
  const pools = new Map<string, number>();
  for (const worker of fleet.workers()) {
    if (!fleet.accepts(worker, anywhere)) continue;
    pools.set(worker.info.pool, (pools.get(worker.info.pool) ?? 0) + 1);
  }
  return [...pools].map(([pool, workers]) => {
    return `use pool ${pool}: ${count(workers, 'worker')} there could take it`;
  });
}

export function wordsOf({ attribute, operator, values }: Constraint): string {
  const value = values.join(', ');
  const words: Record<Constraint['operator'], string> = {
    EQ: `${attribute} = ${value}`,
    NE: `${attribute} other than ${value}`,
    IN: `${attribute} among ${value}`,
    GT: `${attribute} above ${value}`,
    LT: `${attribute} below ${value}`,
    EXISTS: `an attribute ${attribute}`,
  };
  return words[operator];
}

export function termsWords(
  workers: PlannerWorker[],
  { placement, tenant }: PlacementRequest,
): string {
  const reasons: string[] = [];
  const some = (test: (info: PlannerWorker) => boolean): boolean => workers.some(test);
  if (!placement.interruptible && some(({ terms }) => terms.interruptibleOnly)) {
    reasons.push('they take interruptible work only (--spot)');
  }
  if (placement.trust === 'restricted' && some(({ terms }) => terms.marketplace)) {
    reasons.push('they are machines of strangers and the work is restricted');
  }
  if (some(({ terms }) => terms.tenants.length > 0 && !terms.tenants.includes(tenant))) {
    reasons.push(`they are not for tenant ${tenant}`);
  }
  return reasons.join('; ');
}
