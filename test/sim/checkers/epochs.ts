/** I12: epochs rise with every start, also when the clock goes back; event numbers leave no gap. */
import type { Commit } from './mirror.ts';
import { must } from './violation.ts';

export class EpochChecker {
  #epoch = 0;
  #seq = 0;

  booted(epoch: number): void {
    must(epoch > this.#epoch, 'I12', () => `epoch ${epoch} after ${this.#epoch}`);
    this.#epoch = epoch;
  }

  committed({ epoch, events }: Commit): void {
    must(epoch === this.#epoch, 'I12', () => `epoch ${epoch} wrote in epoch ${this.#epoch}`);
    for (const { seq } of events) {
      must(seq === this.#seq + 1, 'I12', () => `event ${seq} after ${this.#seq}`);
      this.#seq = seq;
    }
  }
}
