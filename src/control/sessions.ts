/**
 * Agent sessions: who was heard from when, in which order, and whose call is parked. All in memory:
 * after a restart every worker counts as just heard from.
 */
import type { Clock, Timer } from '../lib/clock.ts';
import type { WorkerId } from '../model/ids.ts';

interface Session {
  contactBootMs: number;
  contactAtMs: number | null;
  /** Order of syncs: the agent's start count, then its sync number. */
  start: number;
  seq: number;
  parked: { wake: () => void; timer: Timer } | null;
}

/** So many parked calls are woken before others get their turn. */
const WAKE_SLICE = 100;

export class Sessions {
  readonly #clock: Clock;
  readonly #sessions = new Map<WorkerId, Session>();
  readonly #bornBootMs: number;
  readonly #toWake = new Set<WorkerId>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#bornBootMs = clock.bootMs();
  }

  lastContactBootMs(worker: WorkerId): number {
    return this.#sessions.get(worker)?.contactBootMs ?? this.#bornBootMs;
  }

  lastContactAtMs(worker: WorkerId): number | null {
    return this.#sessions.get(worker)?.contactAtMs ?? null;
  }

  /** A join begins a new order: the old token is fenced, so nothing of before can come in. */
  reset(worker: WorkerId): void {
    this.#release(worker);
    this.#sessions.set(worker, {
      contactBootMs: this.#clock.bootMs(),
      contactAtMs: this.#clock.now(),
      start: -1,
      seq: -1,
      parked: null,
    });
  }

  /** False when a newer sync was seen before: this one was late or doubled on its way. */
  advance(worker: WorkerId, start: number, seq: number): boolean {
    if (!this.#sessions.has(worker)) this.reset(worker);
    const session = this.#sessions.get(worker) as Session;
    if (start < session.start || (start === session.start && seq <= session.seq)) return false;
    session.start = start;
    session.seq = seq;
    session.contactBootMs = this.#clock.bootMs();
    session.contactAtMs = this.#clock.now();
    this.#release(worker);
    return true;
  }

  isNewest(worker: WorkerId, start: number, seq: number): boolean {
    const session = this.#sessions.get(worker);
    return session?.start === start && session.seq === seq;
  }

  /** Resolves when there may be news, a newer sync came, or the time is over. */
  park(worker: WorkerId, forMs: number): Promise<void> {
    return new Promise((resolve) => {
      const session = this.#sessions.get(worker);
      if (!session) return resolve();
      const timer = this.#clock.setTimer(forMs, () => this.#release(worker));
      session.parked = { wake: resolve, timer };
    });
  }

  /** In slices, so that a storm of news does not hold up everything else. */
  wakeSoon(workers: Iterable<WorkerId>): void {
    const idle = this.#toWake.size === 0;
    for (const worker of workers) this.#toWake.add(worker);
    if (idle && this.#toWake.size > 0) this.#wakeSlice();
  }

  forget(worker: WorkerId): void {
    this.#release(worker);
    this.#sessions.delete(worker);
  }

  releaseAll(): void {
    for (const worker of this.#sessions.keys()) this.#release(worker);
  }

  parkedCount(): number {
    let count = 0;
    for (const session of this.#sessions.values()) if (session.parked) count++;
    return count;
  }

  #wakeSlice(): void {
    let woken = 0;
    for (const worker of this.#toWake) {
      this.#toWake.delete(worker);
      this.#release(worker);
      if (++woken === WAKE_SLICE) break;
    }
    if (this.#toWake.size > 0) this.#clock.soon(() => this.#wakeSlice());
  }

  #release(worker: WorkerId): void {
    const session = this.#sessions.get(worker);
    const parked = session?.parked;
    if (!session || !parked) return;
    session.parked = null;
    parked.timer.cancel();
    parked.wake();
  }
}
