/** What the fake provider really takes for a machine, quantum by quantum. */

/** Paid at its beginning, also when the machine ends within it. */
export interface Charge {
  atMs: number;
  micros: number;
}

interface Period {
  fromMs: number;
  /** Infinity while it goes on. */
  untilMs: number;
  priceHourMicros: number;
}

const HOUR_MS = 3_600_000;

export class Bill {
  readonly #quantumMs: number;
  readonly #periods: Period[] = [];

  constructor(quantumMs: number) {
    this.#quantumMs = quantumMs;
  }

  get running(): boolean {
    return this.#periods.at(-1)?.untilMs === Infinity;
  }

  start(nowMs: number, priceHourMicros: number): void {
    if (this.running) return;
    this.#periods.push({ fromMs: nowMs, untilMs: Infinity, priceHourMicros });
  }

  stop(nowMs: number): void {
    const last = this.#periods.at(-1);
    if (last?.untilMs === Infinity) last.untilMs = nowMs;
  }

  /** Everything that was due until then. */
  charges(nowMs: number): Charge[] {
    const charges: Charge[] = [];
    for (const { fromMs, untilMs, priceHourMicros } of this.#periods) {
      const micros = Math.ceil((priceHourMicros * this.#quantumMs) / HOUR_MS);
      const endMs = Math.min(untilMs, nowMs);
      for (let atMs = fromMs; atMs < endMs || atMs === fromMs; atMs += this.#quantumMs) {
        charges.push({ atMs, micros });
      }
    }
    return charges;
  }
}
