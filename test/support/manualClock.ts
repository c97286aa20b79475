/** A clock that stands still until a test moves it. */
import type { Clock, Timer } from '../../src/lib/clock.ts';

interface Waiting {
  atMs: number;
  run: () => void;
}

/** An ordinary day, so that times look as they do in life. */
const BEGIN_MS = 1_800_000_000_000;
/** Something that still goes on after so many turns goes on for ever. */
const TURNS_AT_MOST = 1000;

export class ManualClock implements Clock {
  #bootMs = 1000;
  #wallOffsetMs = 0;
  #timers: Waiting[] = [];
  #soon: (() => void)[] = [];

  now(): number {
    return BEGIN_MS + this.#bootMs + this.#wallOffsetMs;
  }

  bootMs(): number {
    return this.#bootMs;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const timer = { atMs: this.#bootMs + delayMs, run };
    this.#timers.push(timer);
    return { cancel: () => void (this.#timers = this.#timers.filter((one) => one !== timer)) };
  }

  soon(run: () => void): void {
    this.#soon.push(run);
  }

  /** Timers that are set. */
  get waiting(): number {
    return this.#timers.length;
  }

  /** Somebody set the wall clock; the boot clock does not care. */
  step(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  /** Runs what is due now, with everything that follows from it by promises. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < TURNS_AT_MOST; turn++) {
      await new Promise(setImmediate);
      const due = this.#soon.splice(0);
      if (due.length === 0) return;
      for (const run of due) run();
    }
    throw new Error(`still going on after ${TURNS_AT_MOST} turns`);
  }

  /** What a call answers, without time passing. */
  async run<Value>(call: Promise<Value>): Promise<Value> {
    const seen = { over: false };
    const watched = call.finally(() => void (seen.over = true));
    watched.catch(() => undefined);
    for (let turn = 0; turn < TURNS_AT_MOST && !seen.over; turn++) await this.settle();
    if (!seen.over) throw new Error('the call waits for time to pass');
    return watched;
  }

  /** Lets time pass: timers run in order, each at its time. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#bootMs + byMs;
    await this.settle();
    for (;;) {
      const [first] = this.#timers.toSorted((a, b) => a.atMs - b.atMs);
      if (!first || first.atMs > untilMs) break;
      this.#timers = this.#timers.filter((one) => one !== first);
      this.#bootMs = Math.max(this.#bootMs, first.atMs);
      first.run();
      await this.settle();
    }
    this.#bootMs = untilMs;
  }
}
