/**
 * Requirements: classes that would be placed alike share one, so that what fits for none of them is
 * tried once, and again only when something was freed that could help.
 */
import type { WorkerId } from '../../model/ids.ts';
import type { Explanation } from '../explain.ts';
import type { Fleet, FleetWorker } from '../placement/fleet.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { PendingClass } from './classes.ts';

export interface Shape {
  key: string;
  /** That of any of its classes: they differ in what does not matter to a place. */
  request: PlacementRequest;
  classes: Set<PendingClass>;
  /** It fitted nowhere, and nothing that could help was freed since. */
  blocked: boolean;
  /** What was last said of why it fits nowhere, and when. */
  why: Explanation | null;
  saidAtMs: number;
  /** When victims were last looked for in vain, and a place to keep. */
  noVictimsAtMs: number;
  noProspectAtMs: number;
}

/** With more freed at once than this, looking at each costs more than trying. */
const FREED_LOOKED_AT = 32;

export class Shapes {
  readonly #shapes = new Map<string, Shape>();
  readonly #blocked = new Set<Shape>();

  /** `byTenant`: some workers take the work of some tenants only. */
  of(request: PlacementRequest, byTenant: boolean): Shape {
    const key = shapeKey(request, byTenant);
    let shape = this.#shapes.get(key);
    if (!shape) {
      shape = {
        key,
        request,
        classes: new Set(),
        blocked: false,
        why: null,
        saidAtMs: 0,
        noVictimsAtMs: Number.NEGATIVE_INFINITY,
        noProspectAtMs: Number.NEGATIVE_INFINITY,
      };
      this.#shapes.set(key, shape);
    }
    return shape;
  }

  drop(pending: PendingClass): void {
    const { shape } = pending;
    shape.classes.delete(pending);
    if (shape.classes.size > 0) return;
    this.#shapes.delete(shape.key);
    this.#blocked.delete(shape);
  }

  block(shape: Shape): void {
    shape.blocked = true;
    this.#blocked.add(shape);
  }

  unblock(shape: Shape): void {
    shape.blocked = false;
    this.#blocked.delete(shape);
  }

  blocked(): Iterable<Shape> {
    return this.#blocked;
  }

  /** Frees those that may fit now, and returns them. */
  afterFreeing(fleet: Fleet, freed: ReadonlySet<WorkerId>): Shape[] {
    if (freed.size === 0 || this.#blocked.size === 0) return [];
    const workers: FleetWorker[] = [];
    if (freed.size <= FREED_LOOKED_AT) {
      for (const id of freed) {
        const worker = fleet.worker(id);
        if (worker?.info.open) workers.push(worker);
      }
      if (workers.length === 0) return [];
    }
    const opened: Shape[] = [];
    for (const shape of this.#blocked) {
      if (freed.size <= FREED_LOOKED_AT && !helps(fleet, workers, shape.request)) continue;
      this.unblock(shape);
      opened.push(shape);
    }
    return opened;
  }
}

/** Whether a worker has room for one of it: for a gang, that may complete it. */
export function helps(fleet: Fleet, workers: FleetWorker[], request: PlacementRequest): boolean {
  const { cpuMillis, memoryBytes } = request.resources;
  for (const worker of workers) {
    const { capacity } = worker;
    if (cpuMillis > capacity.cpuFree || memoryBytes > capacity.memoryFree) continue;
    if (!fleet.accepts(worker, request)) continue;
    if (capacity.fit(request.resources).fits) return true;
  }
  return false;
}

function shapeKey(request: PlacementRequest, byTenant: boolean): string {
  const { resources, placement, pool, band, gangSize, timeLimitMs, graceMs } = request;
  const { neededMs, tenant, user } = request;
  const who = byTenant ? `${tenant}/${user}` : placement.antiAffinity !== '' ? tenant : '';
  const times = [timeLimitMs, graceMs, neededMs];
  return JSON.stringify([band, gangSize, times, resources, pool, placement, who]);
}
