/**
 * Many numbers over time as few: each bucket holds the least, the mean, the most and the last of
 * its span. The span doubles whenever there are too many, so that any length fits one pass and
 * little memory.
 */

export interface Bucket {
  /** Of its last number. */
  atMs: number;
  count: number;
  min: number;
  mean: number;
  max: number;
  last: number;
  step: number | null;
}

export class Buckets {
  readonly #most: number;
  #spanMs = 1;
  #byTime = new Map<number, Bucket>();

  constructor(most: number) {
    this.#most = most;
  }

  add(atMs: number, value: number, step: number | null = null): void {
    const one = { atMs, count: 1, min: value, mean: value, max: value, last: value, step };
    this.#put(Math.floor(atMs / this.#spanMs), one);
    while (this.#byTime.size > this.#most) this.#widen();
  }

  /** In the order of time. */
  list(): Bucket[] {
    return [...this.#byTime].toSorted(([a], [b]) => a - b).map(([, bucket]) => bucket);
  }

  #put(time: number, added: Bucket): void {
    const known = this.#byTime.get(time);
    this.#byTime.set(time, known ? merge(known, added) : added);
  }

  #widen(): void {
    const narrow = this.#byTime;
    this.#byTime = new Map();
    this.#spanMs *= 2;
    for (const [time, bucket] of narrow) this.#put(Math.floor(time / 2), bucket);
  }
}

export function merge(a: Bucket, b: Bucket): Bucket {
  const count = a.count + b.count;
  // Of two at one time the later one to come is the last.
  const { atMs, last, step } = b.atMs >= a.atMs ? b : a;
  return {
    ...{ atMs, last, step, count },
    min: Math.min(a.min, b.min),
    mean: a.mean + ((b.mean - a.mean) * b.count) / count,
    max: Math.max(a.max, b.max),
  };
}
