/**
 * A world in one thread: virtual time, one queue of events, one seed. The same seed is the same
 * history.
 */
import { createHash, type Hash } from 'node:crypto';
import type { Clock, Timer } from '../../src/lib/clock.ts';
import { seededRandom, type Random } from '../../src/lib/random.ts';
import { Violation } from './checkers/violation.ts';

interface Scheduled {
  atMs: number;
  /** Ties are broken by the seed, so that every order of simultaneous events is met some day. */
  tie: number;
  order: number;
  run: (() => void) | null;
}

/** A computer with a clock of its own that people and NTP may step. */
export interface Host {
  wallOffsetMs: number;
}

/** A simulated process: its timers stop with it and wait while it is paused. */
export interface Process {
  name: string;
  host: Host;
  alive: boolean;
  paused: boolean;
  deferred: (() => void)[];
}

/** Where virtual time begins: an ordinary day, so that epochs look as they do in life. */
const BEGIN_MS = 1_800_000_000_000;
/** Or shortly before this: a day and a month are over while work runs. */
const NEW_MONTH_MS = Date.UTC(2027, 1, 1);
const NEW_MONTH_WITHIN_MS = 80_000;

/** So many events at one moment: somebody keeps the processor busy and waits for nothing. */
const MOST_AT_ONCE = 20_000;

/** The trace is hashed in pieces of about this size. */
const HASH_PIECE = 1 << 16;

export class World {
  readonly random: Random;
  nowMs = 0;
  events = 0;
  readonly lines: string[] = [];
  readonly #trace: Hash = createHash('sha256');
  readonly #keep: number;
  readonly #beginMs: number;
  #unhashed = '';
  #heap: Scheduled[] = [];
  #order = 0;
  #atOnce = 0;

  constructor(seed: number, keepLines = 0) {
    this.random = seededRandom(seed);
    this.#beginMs = this.chance(0.3)
      ? NEW_MONTH_MS - this.between(5000, NEW_MONTH_WITHIN_MS)
      : BEGIN_MS;
    this.#keep = keepLines;
  }

  chance(probability: number): boolean {
    return this.random.next() < probability;
  }

  between(low: number, high: number): number {
    return Math.floor(low + this.random.next() * (high - low + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.random.next() * items.length)] as Item;
  }

  /** Writes one line of the history; its hash proves a replay identical. */
  note(who: string, what: string): void {
    const line = `${(this.nowMs / 1000).toFixed(3).padStart(9)}  ${who.padEnd(11)} ${what}`;
    this.#unhashed += `${line}\n`;
    if (this.#unhashed.length > HASH_PIECE) this.#hashPiece();
    if (this.#keep === 0) return;
    this.lines.push(line);
    if (this.lines.length > this.#keep * 2) this.lines.splice(0, this.#keep);
  }

  hash(): string {
    this.#hashPiece();
    return this.#trace.copy().digest('hex').slice(0, 16);
  }

  #hashPiece(): void {
    this.#trace.update(this.#unhashed);
    this.#unhashed = '';
  }

  after(delayMs: number, run: () => void): Timer {
    const event: Scheduled = {
      atMs: this.nowMs + Math.max(0, delayMs),
      tie: this.random.next(),
      order: this.#order++,
      run,
    };
    this.#push(event);
    return {
      cancel() {
        event.run = null;
      },
    };
  }

  spawn(name: string, host: Host = { wallOffsetMs: 0 }): Process {
    return { name, host, alive: true, paused: false, deferred: [] };
  }

  /** What waited runs one after another, each as an event of its own, before anything newer. */
  resume(process: Process): void {
    const run = process.deferred.shift();
    if (!run) {
      process.paused = false;
      return;
    }
    this.after(0, () => {
      if (!process.alive) return;
      run();
      this.resume(process);
    });
  }

  /** Runs `run` in the process now, when it resumes, or never. */
  inside(process: Process, run: () => void): void {
    if (!process.alive) return;
    if (process.paused) process.deferred.push(run);
    else run();
  }

  /** What the clock of a computer says. */
  timeOn(host: Host): number {
    return this.#beginMs + this.nowMs + host.wallOffsetMs;
  }

  clockOf(process: Process): Clock {
    return {
      now: () => this.timeOn(process.host),
      bootMs: () => this.nowMs,
      setTimer: (delayMs, run) => this.after(delayMs, () => this.inside(process, run)),
      soon: (run) => void this.after(0, () => this.inside(process, run)),
    };
  }

  /**
   * Runs events until the time is reached, calling `check` after each. Everything an event sets
   * going by promises happens before the next event: a tick asked for by a microtask comes after
   * all microtasks.
   */
  run(untilMs: number, check: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const nextEvent = (): void => process.nextTick(step);
      const step = (): void => {
        try {
          check();
          const event = this.#next(untilMs);
          if (event) {
            event.run?.();
            queueMicrotask(nextEvent);
            return;
          }
          this.nowMs = Math.max(this.nowMs, untilMs);
          resolve();
        } catch (error) {
          reject(error);
        }
      };
      step();
    });
  }

  #next(untilMs: number): Scheduled | null {
    for (;;) {
      const event = this.#heap[0];
      if (!event || event.atMs > untilMs) return null;
      this.#pop();
      if (!event.run) continue;
      this.#atOnce = event.atMs === this.nowMs ? this.#atOnce + 1 : 0;
      if (this.#atOnce > MOST_AT_ONCE) throw new Violation('L1', 'time stands still');
      this.nowMs = event.atMs;
      this.events++;
      return event;
    }
  }

  #push(event: Scheduled): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!earlier(event, heap[parent] as Scheduled)) break;
      heap[at] = heap[parent] as Scheduled;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Scheduled;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right && earlier(right, heap[child] as Scheduled)) child++;
      if (!earlier(heap[child] as Scheduled, last)) break;
      heap[at] = heap[child] as Scheduled;
      at = child;
    }
    heap[at] = last;
  }
}

function earlier(a: Scheduled, b: Scheduled): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  if (a.tie !== b.tie) return a.tie < b.tie;
  return a.order < b.order;
}
