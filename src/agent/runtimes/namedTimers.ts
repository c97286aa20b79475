/** Timers by name: setting one again replaces it. */
import type { Clock, Timer } from '../../lib/clock.ts';

export class NamedTimers {
  readonly #clock: Clock;
  readonly #timers = new Map<string, Timer>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  set(name: string, delayMs: number, run: () => void): void {
    this.cancel(name);
    this.#timers.set(name, this.#clock.setTimer(delayMs, run));
  }

  cancel(name: string): void {
    this.#timers.get(name)?.cancel();
    this.#timers.delete(name);
  }

  cancelAll(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}
