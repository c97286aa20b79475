/**
 * The requests that were asked about lately, each with its candidates. Requests of different people
 * that ask for the same share them.
 */
import { Candidates } from './candidates.ts';
import type { PlacementRequest, PlannerWorker } from './request.ts';
import { Shape } from './shape.ts';
import { STATES_KEPT_MOST } from './stateHeap.ts';

/** Candidates kept over all shapes: about 16 bytes each. */
const CANDIDATES_KEPT = 4_000_000;
const SHAPES_KEPT_MIN = 64;
const SHAPES_KEPT_MAX = 4096;

/** Stands for workers that have an end; no tenant is called so. */
const ENDS = '';

export class Shapes {
  readonly #shapes = new Map<string, Candidates>();
  #known = new WeakMap<PlacementRequest, { single?: Candidates; gang?: Candidates }>();
  /** Tenants and users that some worker names: to all others the same workers are open. */
  readonly #named = new Set<string>();
  #asked = 0;

  /** `states`: how many there are, which is the most candidates that a gang can have. */
  of(request: PlacementRequest, mode: 'single' | 'gang', states: number): Candidates {
    let known = this.#known.get(request);
    if (!known) this.#known.set(request, (known = {}));
    let candidates = known[mode];
    if (!candidates) {
      const key = this.#keyOf(request, mode);
      candidates = this.#shapes.get(key);
      if (!candidates) {
        this.#makeRoom(mode === 'gang' ? states : Math.min(states, STATES_KEPT_MOST));
        candidates = new Candidates(new Shape(request), mode === 'gang');
        this.#shapes.set(key, candidates);
      }
      known[mode] = candidates;
    }
    candidates.usedAt = ++this.#asked;
    return candidates;
  }

  /** From now on requests are told apart by what this worker tells apart. */
  tellApart({ terms, lasts }: PlannerWorker): void {
    const before = this.#named.size;
    for (const name of terms.tenants) this.#named.add(name);
    for (const name of terms.users) this.#named.add(name);
    if (lasts !== null) this.#named.add(ENDS);
    if (this.#named.size !== before) this.#forget(0);
  }

  /** For one more shape with so many candidates. */
  #makeRoom(candidates: number): void {
    const room = Math.floor(CANDIDATES_KEPT / (candidates + 1));
    const limit = Math.max(SHAPES_KEPT_MIN, Math.min(SHAPES_KEPT_MAX, room));
    if (this.#shapes.size >= limit) this.#forget(limit / 2);
  }

  /** All but the `kept` last used. */
  #forget(kept: number): void {
    const oldestFirst = [...this.#shapes].toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [key] of oldestFirst.slice(0, Math.max(0, oldestFirst.length - kept))) {
      this.#shapes.delete(key);
    }
    this.#known = new WeakMap();
  }

  #keyOf(request: PlacementRequest, mode: string): string {
    const { tenant, pool, resources, placement } = request;
    const user = `${tenant}/${request.user}`;
    const tenantMatters = placement.antiAffinity !== '' || this.#named.has(tenant);
    const who = this.#named.has(user) ? user : tenantMatters ? tenant : null;
    const ms = this.#named.has(ENDS) ? request.neededMs : 0;
    return JSON.stringify([mode, who, ms, pool, resources, placement]);
  }
}
