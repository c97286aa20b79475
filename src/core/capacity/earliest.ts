/** The next moment at which the clock alone may change a plan. */

export class Earliest {
  ms: number | null = null;
  readonly #nowMs: number;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  /** What has passed, or is not known, changes nothing more. */
  at(ms: number | null): void {
    if (ms === null || ms <= this.#nowMs || ms === Number.POSITIVE_INFINITY) return;
    if (this.ms === null || ms < this.ms) this.ms = ms;
  }
}
