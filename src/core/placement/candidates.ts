/**
 * Where one request fits, best first, kept up to date by looking only at states that are new. A
 * state's score never changes, so a heap holds; states that died are dropped when they come up.
 * Only the best are kept: when they are used up, everything is looked at again.
 */
import type { DemandClass } from './demand.ts';
import type { Score } from './score.ts';
import type { Shape, Standing } from './shape.ts';
import { StateHeap } from './stateHeap.ts';
import type { States, WorkerState } from './states.ts';

/**
 * So many new states that fit are enough to choose from: beyond it, scoring costs more than it
 * finds. The others are looked at when these are used up.
 */
const NEW_LOOKED_AT = 256;
const MANY_STATES = 2048;

export class Candidates {
  readonly shape: Shape;
  /** When it was last asked, by the fleet's count: the least recent are forgotten first. */
  usedAt = 0;
  /** The last answer was that it fits nowhere. */
  refused = false;
  /** Where it is counted as demand, once it was. */
  demand: DemandClass | null = null;
  readonly #byLocality: boolean;
  readonly #localities = new Map<string, Tiers>();
  #seen = 0;
  /** Some births were not looked at because there was enough to choose from. */
  #passedOver = false;
  #score: Score | null = null;

  /** `byLocality`: for gangs, whose members must reach each other. */
  constructor(shape: Shape, byLocality: boolean) {
    this.shape = shape;
    this.#byLocality = byLocality;
  }

  /** Looks at what is new; everything is scored anew when the score is another one. */
  update(states: States, score: Score): void {
    if (this.#score !== score) {
      this.#score = score;
      this.#lookAtAll(states);
      return;
    }
    if (this.#seen === states.born) return;
    const most = this.#mostNew(states);
    let added = 0;
    const from = this.#seen;
    const until = states.since(from, (state) => {
      if (this.#add(state)) added++;
      return added < most;
    });
    if (until > from) this.#passedOver = true;
    this.#seen = states.born;
  }

  /** That its states are scored by; null before the first update. */
  get score(): Score | null {
    return this.#score;
  }

  /** For one task: looks at everything again, by this score, before it says that there is none. */
  best(states: States, score: Score): WorkerState | null {
    const tiers = this.#localities.get('');
    const best = tiers ? tiers.best(this.#passedOver) : null;
    if (best !== undefined) return best;
    this.#score = score;
    this.#lookAtAll(states);
    return this.#localities.get('')?.best(false) ?? null;
  }

  localities(): Iterable<[string, Tiers]> {
    return this.#localities;
  }

  #lookAtAll(states: States): void {
    this.#localities.clear();
    this.#passedOver = false;
    states.since(0, (state) => {
      this.#add(state);
      return true;
    });
    this.#seen = states.born;
  }

  /**
   * A gang counts its room, what is preferred or cheaper must be found wherever it is, and a choice
   * that is small sees all.
   */
  #mostNew(states: States): number {
    const { constraints } = this.shape.request.placement;
    const all =
      this.#byLocality ||
      states.size < MANY_STATES ||
      (this.#localities.get('')?.size ?? 0) > 1 ||
      constraints.some(({ preferred }) => preferred);
    return all ? Number.POSITIVE_INFINITY : NEW_LOOKED_AT;
  }

  readonly #add = (state: WorkerState): boolean => {
    if (!this.#score || !this.shape.mayFit(state)) return false;
    const score = this.shape.score(state, this.#score);
    if (score === Number.POSITIVE_INFINITY) return false;
    const standing = this.shape.standing(state.kind);
    const locality = this.#byLocality ? standing.locality : '';
    if (locality === null) return false;
    let tiers = this.#localities.get(locality);
    if (!tiers) this.#localities.set(locality, (tiers = new Tiers(!this.#byLocality)));
    tiers.add(state, score, standing);
    return true;
  };
}

interface Tier {
  preference: number;
  priceMicros: number;
  heap: StateHeap;
}

/** More preferred before less, cheaper before dearer, then by score. */
export class Tiers {
  readonly #tiers: Tier[] = [];
  readonly #bestOnly: boolean;

  constructor(bestOnly: boolean) {
    this.#bestOnly = bestOnly;
  }

  get size(): number {
    return this.#tiers.length;
  }

  add(state: WorkerState, score: number, { preference, priceMicros }: Standing): void {
    const tiers = this.#tiers;
    let at = 0;
    for (; at < tiers.length; at++) {
      const tier = tiers[at] as Tier;
      if (tier.preference === preference && tier.priceMicros === priceMicros) break;
      const later = tier.preference - preference || priceMicros - tier.priceMicros;
      if (later < 0) {
        tiers.splice(at, 0, this.#tier(preference, priceMicros));
        break;
      }
    }
    if (at === tiers.length) tiers.push(this.#tier(preference, priceMicros));
    (tiers[at] as Tier).heap.push(score, state);
  }

  /** Undefined: only a look at all states could tell, as also where some were `passedOver`. */
  best(passedOver: boolean): WorkerState | null | undefined {
    for (const { heap } of this.#tiers) {
      const best = heap.peek();
      if (best) return best;
      if (passedOver || heap.forgot) return undefined;
    }
    return null;
  }

  /** Tiers in order with what is alive in each. */
  *alive(): Iterable<{ preference: number; priceMicros: number; states: WorkerState[] }> {
    for (const { preference, priceMicros, heap } of this.#tiers) {
      yield { preference, priceMicros, states: heap.alive() };
    }
  }

  #tier(preference: number, priceMicros: number): Tier {
    return { preference, priceMicros, heap: new StateHeap(this.#bestOnly) };
  }
}
