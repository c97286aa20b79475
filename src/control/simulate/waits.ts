/** How long things waited: every single wait is kept, so that the percentiles are exact. */
import { PRIORITIES, type Priority } from '../../model/job.ts';
import type { WaitRow } from '../../protocol/simulation.ts';

class Numbers {
  #values = new Float64Array(1024);
  #count = 0;

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(this.#count * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count++] = value;
  }

  sorted(): Float64Array {
    return this.#values.slice(0, this.#count).toSorted();
  }
}

interface Band {
  count: number;
  waits: Numbers;
}

export class Waits {
  readonly #bands: Band[] = PRIORITIES.map(() => ({ count: 0, waits: new Numbers() }));

  submitted(band: Priority, count: number): void {
    this.#of(band).count += count;
  }

  started(band: Priority, waitMs: number): void {
    this.#of(band).waits.add(waitMs);
  }

  /** A row for each band that has any, then one for all. */
  rows(): WaitRow[] {
    const sorted = this.#bands.map(({ waits }) => waits.sorted());
    const rows = PRIORITIES.map((band, at) =>
      rowOf(band, this.#bands[at]?.count ?? 0, sorted[at] as Float64Array),
    ).filter(({ count }) => count > 0);
    const total = this.#bands.reduce((sum, { count }) => sum + count, 0);
    return [...rows, rowOf('all', total, joined(sorted))];
  }

  #of(band: Priority): Band {
    return this.#bands[PRIORITIES.indexOf(band)] as Band;
  }
}

function rowOf(band: WaitRow['band'], count: number, waits: Float64Array): WaitRow {
  let sum = 0;
  for (const wait of waits) sum += wait;
  return {
    band,
    count,
    started: waits.length,
    meanMs: waits.length === 0 ? 0 : sum / waits.length,
    p50Ms: percentile(waits, 50),
    p90Ms: percentile(waits, 90),
    p99Ms: percentile(waits, 99),
    maxMs: waits.at(-1) ?? 0,
  };
}

/** The smallest value that so many per cent do not exceed. */
function percentile(sorted: Float64Array, percent: number): number {
  if (sorted.length === 0) return 0;
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0;
}

function joined(parts: Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all.toSorted();
}
