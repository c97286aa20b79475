/** A token bucket: so many a second, and what was not used is saved up to a burst. */

export interface Rate {
  perSecond: number;
  burst: number;
}

export class Bucket {
  readonly rate: Rate;
  #level: number;
  #atMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.rate = rate;
    this.#level = rate.burst;
    this.#atMs = nowMs;
  }

  /** How long until `count` fit; 0: they do now. More than a burst fits once the bucket is full. */
  waitMs(count: number, nowMs: number): number {
    const wanted = Math.min(count, this.rate.burst);
    // What comes in with time only adds to it: most calls need no more than this.
    if (this.#level >= wanted) return 0;
    this.#refill(nowMs);
    const missing = wanted - this.#level;
    return missing <= 0 ? 0 : (missing / this.rate.perSecond) * 1000;
  }

  /** After `waitMs` said 0. A count above the burst leaves a debt, so that the rate holds. */
  spend(count: number): void {
    this.#level -= count;
  }

  /** Whole ones that are left. */
  get left(): number {
    return Math.max(0, Math.floor(this.#level));
  }

  /** Less than half is left: time to tell the caller. */
  isLow(nowMs: number): boolean {
    const half = this.rate.burst / 2;
    if (this.#level >= half) return false;
    this.#refill(nowMs);
    return this.#level < half;
  }

  isFull(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#level >= this.rate.burst;
  }

  #refill(nowMs: number): void {
    const { perSecond, burst } = this.rate;
    // Calls whose token had to be asked about tell an earlier time than the one before them.
    if (nowMs <= this.#atMs) return;
    const gained = ((nowMs - this.#atMs) * perSecond) / 1000;
    this.#atMs = nowMs;
    this.#level = Math.min(burst, this.#level + gained);
  }
}
