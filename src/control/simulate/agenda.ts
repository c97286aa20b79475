/** What will happen and when, in order of time; at the same time, in the order it was noted. */
import type { Clock, Timer } from '../../lib/clock.ts';

interface Entry {
  atMs: number;
  order: number;
  run: (() => void) | null;
  /** It alone does not keep the simulation going. */
  background: boolean;
}

/** A clock that only the simulation moves, with the list of what is due on it. */
export class Agenda implements Clock {
  readonly #heap: Entry[] = [];
  #order = 0;
  #nowMs: number;
  #soon: (() => void)[] = [];
  #foreground = 0;

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  bootMs(): number {
    return this.#nowMs;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    return this.at(this.#nowMs + delayMs, run);
  }

  soon(run: () => void): void {
    this.#soon.push(run);
  }

  at(atMs: number, run: () => void, background = false): Timer {
    const entry: Entry = { atMs, order: this.#order++, run, background };
    this.#push(entry);
    if (!background) this.#foreground++;
    return {
      cancel: () => {
        if (entry.run && !background) this.#foreground--;
        entry.run = null;
      },
    };
  }

  /** Whether anything is ahead but what goes on for ever. */
  get busy(): boolean {
    return this.#foreground > 0;
  }

  /** When the next thing is due; null when there is none. */
  get nextMs(): number | null {
    for (;;) {
      const top = this.#heap[0];
      if (!top) return null;
      if (top.run) return top.atMs;
      this.#pop();
    }
  }

  moveTo(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  /** Runs all that is due now, also what that brings about. */
  runDue(): void {
    for (;;) {
      for (const run of this.#soon.splice(0)) run();
      const top = this.#heap[0];
      if (!top || top.atMs > this.#nowMs) break;
      this.#pop();
      const { run } = top;
      if (!run) continue;
      top.run = null;
      if (!top.background) this.#foreground--;
      run();
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Entry;
      if (!before(entry, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right && before(right, heap[child] as Entry)) child++;
      const below = heap[child] as Entry;
      if (!before(below, last)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
