/**
 * The connections of those who were refused are not read for a moment. A refusal costs some 20 us,
 * so that a flood of them could take a whole thread; this is TCP's own way to slow a sender down.
 * They are read again in turn, so many a second: the more there are, the longer each waits, but
 * never beyond what its `Retry-After` said. Whoever keeps to that notices nothing.
 */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../lib/clock.ts';

const TICK_MS = 10;
/** Together 2,000 a second, a twentieth of the thread's time when all are refused again. */
const READ_PER_TICK = 20;

interface Parked {
  socket: Socket;
  untilMs: number;
}

export class Parking {
  readonly #clock: Pick<Clock, 'setTimer' | 'soon'>;
  /** Refused in this turn of the loop. */
  #fresh: Parked[] = [];
  /** In order; those before `#first` are gone. */
  #queue: Parked[] = [];
  #first = 0;
  #timer: Timer | undefined;

  constructor(clock: Pick<Clock, 'setTimer' | 'soon'>) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#queue.length - this.#first;
  }

  park(socket: Socket, seconds: number): void {
    // Node reads on once the answer is out, so that a pause before would be undone.
    if (this.#fresh.length === 0) this.#clock.soon(() => this.#pauseFresh());
    this.#fresh.push({ socket, untilMs: performance.now() + seconds * 1000 });
  }

  /** Everything is read again, so that a gateway can close. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#readOn(Number.POSITIVE_INFINITY, 0);
  }

  #pauseFresh(): void {
    for (const parked of this.#fresh) {
      if (parked.socket.destroyed) continue;
      parked.socket.pause();
      this.#queue.push(parked);
    }
    this.#fresh = [];
    if (this.#timer === undefined && this.size > 0) this.#schedule();
  }

  #schedule(): void {
    this.#timer = this.#clock.setTimer(TICK_MS, () => {
      this.#timer = undefined;
      this.#readOn(READ_PER_TICK, performance.now());
      if (this.size > 0) this.#schedule();
    });
  }

  #readOn(most: number, nowMs: number): void {
    for (let count = 0; this.#first < this.#queue.length; count++, this.#first++) {
      const { socket, untilMs } = this.#queue[this.#first]!;
      if (count >= most && untilMs > nowMs) break;
      if (!socket.destroyed) socket.resume();
    }
    // Only now and then: moving thousands for each tick would cost more than they do.
    if (this.#first * 2 < this.#queue.length) return;
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
  }
}
