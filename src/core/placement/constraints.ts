/** Whether a worker is what a request asks for, before looking at what is free on it. */
import type { Constraint, WorkerTerms } from '../../model/placement.ts';
import { matches, type Misfit } from './capacity.ts';
import type { PlacementRequest, PlannerWorker } from './request.ts';

export const UNSUITABLE = ['pool', 'closed', 'terms', 'constraint', 'ends'] as const;
export type Unsuitable = (typeof UNSUITABLE)[number];

/** The first thing about the worker itself that rules it out, or null. */
export function unsuitable(worker: PlannerWorker, request: PlacementRequest): Unsuitable | null {
  if (request.pool !== '' && worker.pool !== request.pool) return 'pool';
  if (!worker.open) return 'closed';
  if (!allows(worker.terms, request)) return 'terms';
  for (const constraint of request.placement.constraints) {
    if (!constraint.preferred && !satisfies(worker, constraint)) return 'constraint';
  }
  return endsTooSoon(worker, request) ? 'ends' : null;
}

/** Work of which nobody knows how long it takes is taken to need what the pool assumes. */
function endsTooSoon({ lasts }: PlannerWorker, { neededMs }: PlacementRequest): boolean {
  return lasts !== null && (neededMs || lasts.assumedJobMs) > lasts.ms;
}

/** What the worker is short of even when nothing is held on it, or null. */
export function tooSmall(worker: PlannerWorker, request: PlacementRequest): Misfit | null {
  const { resources: has } = worker;
  const { device, cpuMillis, memoryBytes, ports } = request.resources;
  if (device) {
    let matching = 0;
    for (const each of has.devices) if (matches(each, device)) matching++;
    if (matching < device.count) return 'devices';
  }
  if (cpuMillis > has.cpuMillis) return 'cpus';
  if (memoryBytes > has.memoryBytes) return 'memory';
  if (ports > has.portRange[1] - has.portRange[0] + 1) return 'ports';
  return null;
}

/** How many of the preferred constraints it satisfies: more is better, before any other score. */
export function preference(worker: PlannerWorker, request: PlacementRequest): number {
  let satisfied = 0;
  for (const constraint of request.placement.constraints) {
    if (constraint.preferred && satisfies(worker, constraint)) satisfied++;
  }
  return satisfied;
}

/** A worker without the attribute satisfies NE and nothing else. */
export function satisfies(worker: PlannerWorker, constraint: Constraint): boolean {
  const value = attributeOf(worker, constraint.attribute);
  const wanted = constraint.values[0] ?? '';
  switch (constraint.operator) {
    case 'EXISTS':
      return value !== undefined;
    case 'EQ':
      return value === wanted;
    case 'NE':
      return value !== wanted;
    case 'IN':
      return value !== undefined && constraint.values.includes(value);
    case 'GT':
      return numberOf(value) > numberOf(wanted);
    case 'LT':
      return numberOf(value) < numberOf(wanted);
  }
}

/** The three fields that every worker has count as attributes, whatever else bears their name. */
export function attributeOf(worker: PlannerWorker, attribute: string): string | undefined {
  if (attribute === 'pool' || attribute === 'name' || attribute === 'network') {
    return worker[attribute];
  }
  return Object.hasOwn(worker.attributes, attribute) ? worker.attributes[attribute] : undefined;
}

/** NaN compares false with everything, so what is not a number satisfies neither GT nor LT. */
function numberOf(text: string | undefined): number {
  return text === undefined || text.trim() === '' ? Number.NaN : Number(text);
}

export function allows(terms: WorkerTerms, request: PlacementRequest): boolean {
  const { tenant, user, placement } = request;
  if (terms.interruptibleOnly && !placement.interruptible) return false;
  if (terms.marketplace && placement.trust === 'restricted') return false;
  if (terms.users.length > 0 && !terms.users.includes(`${tenant}/${user}`)) return false;
  return terms.tenants.length === 0 || terms.tenants.includes(tenant);
}
