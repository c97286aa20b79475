/** States by their score for one request, the best at hand; those that died are passed over. */
import type { WorkerState } from './states.ts';

const SWEEP_MIN = 64;
/** Where only the best count: at twice as many the worse half is forgotten. */
const STATES_KEPT = 256;
export const STATES_KEPT_MOST = 2 * STATES_KEPT;

/** A binary heap that is swept when more than half of it may be dead. */
export class StateHeap {
  readonly #scores: number[] = [];
  readonly #states: WorkerState[] = [];
  readonly #bestOnly: boolean;
  #sweepAt: number;
  /** What scores no less is not kept: some that scored as much were forgotten. */
  #enough = Number.POSITIVE_INFINITY;

  constructor(bestOnly: boolean) {
    this.#bestOnly = bestOnly;
    this.#sweepAt = bestOnly ? STATES_KEPT_MOST : SWEEP_MIN;
  }

  /** There were others, all worse than those that are kept. */
  get forgot(): boolean {
    return this.#enough < Number.POSITIVE_INFINITY;
  }

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
    if (score >= this.#enough) return;
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
    if (!this.#bestOnly) this.#sweepAt = Math.max(SWEEP_MIN, 2 * kept);
    else if (kept > STATES_KEPT) this.#forgetWorse();
  }

  #forgetWorse(): void {
    const scores: number[] = [];
    const states: WorkerState[] = [];
    for (let at = 0; at < STATES_KEPT; at++) {
      scores.push(this.#scores[0] as number);
      states.push(this.#states[0] as WorkerState);
      this.#pop();
    }
    this.#enough = scores[STATES_KEPT - 1] as number;
    // What stands in order is a heap.
    for (let at = 0; at < STATES_KEPT; at++) {
      this.#scores[at] = scores[at] as number;
      this.#states[at] = states[at] as WorkerState;
    }
    this.#scores.length = STATES_KEPT;
    this.#states.length = STATES_KEPT;
  }
}
