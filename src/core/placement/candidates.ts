/**
 * Where one request fits, best first, kept up to date by looking only at states that are new. A
 * state's score never changes, so a heap holds; states that died are dropped when they come up.
 */
import type { DemandClass } from './demand.ts';
import type { Score } from './score.ts';
import type { Shape, Standing } from './shape.ts';
import type { States, WorkerState } from './states.ts';

/**
 * So many new states that fit are enough to choose from: beyond it, scoring costs more than it
 * finds. The others are looked at when these are used up.
 */
const NEW_LOOKED_AT = 256;
const MANY_STATES = 2048;
const UNSEEN_KEPT = 32;

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
  /** Births that were passed over because there was enough to choose from, oldest first. */
  #unseen: { from: number; until: number }[] = [];
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
      this.#localities.clear();
      this.#seen = 0;
      this.#unseen = [];
    }
    if (this.#seen === states.born) return;
    const most = this.#mostNew(states);
    let added = 0;
    const from = this.#seen;
    const until = states.since(from, (state) => {
      if (this.#add(state)) added++;
      return added < most;
    });
    if (until > from) this.#passOver(from, until);
    this.#seen = states.born;
  }

  /** Looks at what was passed over. True when there was something. */
  catchUp(states: States): boolean {
    if (this.#unseen.length === 0) return false;
    for (const { from, until } of this.#unseen) states.between(from, until, this.#add);
    this.#unseen = [];
    return true;
  }

  /**
   * A gang counts its room, what is preferred must be found wherever it is, and a choice that
   * begins or is small sees all.
   */
  #mostNew(states: States): number {
    const { constraints } = this.shape.request.placement;
    const all =
      this.#byLocality ||
      this.#seen === 0 ||
      states.size < MANY_STATES ||
      constraints.some(({ preferred }) => preferred);
    return all ? Number.POSITIVE_INFINITY : NEW_LOOKED_AT;
  }

  #passOver(from: number, until: number): void {
    this.#unseen.push({ from, until });
    if (this.#unseen.length <= UNSEEN_KEPT) return;
    // What lies between two of them is then looked at again, which does no harm.
    const [first, second] = this.#unseen.splice(0, 2);
    if (first && second) this.#unseen.unshift({ from: first.from, until: second.until });
  }

  /** That its states are scored by; null before the first update. */
  get score(): Score | null {
    return this.#score;
  }

  best(): WorkerState | null {
    return this.#localities.get('')?.best() ?? null;
  }

  localities(): Iterable<Tiers> {
    return this.#localities.values();
  }

  readonly #add = (state: WorkerState): boolean => {
    if (!this.#score || !this.shape.mayFit(state)) return false;
    const score = this.shape.score(state, this.#score);
    if (score === Number.POSITIVE_INFINITY) return false;
    const standing = this.shape.standing(state.kind);
    const locality = this.#byLocality ? standing.locality : '';
    if (locality === null) return false;
    let tiers = this.#localities.get(locality);
    if (!tiers) this.#localities.set(locality, (tiers = new Tiers()));
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

  add(state: WorkerState, score: number, { preference, priceMicros }: Standing): void {
    const tiers = this.#tiers;
    let at = 0;
    for (; at < tiers.length; at++) {
      const tier = tiers[at] as Tier;
      if (tier.preference === preference && tier.priceMicros === priceMicros) break;
      const later = tier.preference - preference || priceMicros - tier.priceMicros;
      if (later < 0) {
        tiers.splice(at, 0, { preference, priceMicros, heap: new StateHeap() });
        break;
      }
    }
    if (at === tiers.length) tiers.push({ preference, priceMicros, heap: new StateHeap() });
    (tiers[at] as Tier).heap.push(score, state);
  }

  best(): WorkerState | null {
    for (const { heap } of this.#tiers) {
      const best = heap.peek();
      if (best) return best;
    }
    return null;
  }

  /** Tiers in order with what is alive in each. */
  *alive(): Iterable<{ preference: number; priceMicros: number; states: WorkerState[] }> {
    for (const { preference, priceMicros, heap } of this.#tiers) {
      yield { preference, priceMicros, states: heap.alive() };
    }
  }
}

/** A binary heap that is swept when more than half of it may be dead. */
class StateHeap {
  readonly #scores: number[] = [];
  readonly #states: WorkerState[] = [];
  #sweepAt = SWEEP_MIN;

  peek(): WorkerState | null {
    for (;;) {
      const top = this.#states[0];
      if (!top) return null;
      if (top.members.length > 0) return top;
      this.#pop();
    }
  }

  alive(): WorkerState[] {
    return this.#states.filter(({ members }) => members.length > 0);
  }

  push(score: number, state: WorkerState): void {
    if (this.#states.length >= this.#sweepAt) this.#sweep();
    this.#rise(this.#states.length, score, state);
  }

  #rise(from: number, score: number, state: WorkerState): void {
    const scores = this.#scores;
    const states = this.#states;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((scores[parent] as number) <= score) break;
      scores[at] = scores[parent] as number;
      states[at] = states[parent] as WorkerState;
      at = parent;
    }
    scores[at] = score;
    states[at] = state;
  }

  #pop(): void {
    const score = this.#scores.pop();
    const state = this.#states.pop();
    const size = this.#states.length;
    if (size === 0 || score === undefined || !state) return;
    const scores = this.#scores;
    const states = this.#states;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && (scores[child + 1] as number) < (scores[child] as number)) child++;
      if ((scores[child] as number) >= score) break;
      scores[at] = scores[child] as number;
      states[at] = states[child] as WorkerState;
      at = child;
    }
    scores[at] = score;
    states[at] = state;
  }

  #sweep(): void {
    const scores = this.#scores;
    const states = this.#states;
    let kept = 0;
    // Rising in the order they lie in is nearly free: what was a heap is nearly one.
    for (let at = 0; at < states.length; at++) {
      const state = states[at] as WorkerState;
      if (state.members.length > 0) this.#rise(kept++, scores[at] as number, state);
    }
    scores.length = kept;
    states.length = kept;
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * kept);
  }
}

const SWEEP_MIN = 64;
