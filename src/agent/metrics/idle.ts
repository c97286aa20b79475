/** Whether devices have nothing to do: their mean use over a rule's time is below its limit. */
import type { IdleRule } from '../../model/jobParts.ts';

interface Sample {
  atMs: number;
  percent: number;
}

/**
 * Samples in the order of their time. Where some are missing (no agent ran, a read failed) it is
 * not known what the devices did, so that the time before the gap does not count.
 */
export class IdleWatch {
  readonly #rule: IdleRule;
  readonly #longestGapMs: number;
  #samples: Sample[] = [];
  #sum = 0;
  #sinceMs = 0;

  constructor(rule: IdleRule, periodMs: number) {
    this.#rule = rule;
    this.#longestGapMs = GAP_PERIODS * periodMs;
  }

  /** The mean in percent when they are idle, else undefined. */
  add(atMs: number, percent: number): number | undefined {
    const last = this.#samples.at(-1);
    if (!last || atMs - last.atMs > this.#longestGapMs || atMs < last.atMs) {
      this.#samples = [];
      this.#sum = 0;
      this.#sinceMs = atMs;
    }
    this.#samples.push({ atMs, percent });
    this.#sum += percent;
    const { forMs, belowPercent } = this.#rule;
    let old = 0;
    while ((this.#samples[old]?.atMs ?? atMs) < atMs - forMs) {
      this.#sum -= this.#samples[old++]?.percent ?? 0;
    }
    if (old > 0) this.#samples = this.#samples.slice(old);
    if (atMs - this.#sinceMs < forMs) return undefined;
    const mean = this.#sum / this.#samples.length;
    return mean < belowPercent ? mean : undefined;
  }
}

/** A sample may come late on a busy machine. */
const GAP_PERIODS = 6;
