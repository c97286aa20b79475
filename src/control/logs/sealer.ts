/**
 * Compresses closed segments, one at a time and a while after they were closed: whoever follows a
 * job reads what it wrote just now, and a burst leaves no processor time for compression.
 */
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { JobLog } from './jobLog.ts';

export interface SealerOptions {
  clock: Clock;
  log: Log;
}

export class Sealer {
  readonly #options: SealerOptions;
  readonly #queue = new Set<JobLog>();
  /** Jobs whose next segment is not yet due. */
  readonly #waiting = new Set<JobLog>();
  #timer: Timer | undefined;
  #sealing: Promise<void> | undefined;
  #closed = false;

  constructor(options: SealerOptions) {
    this.#options = options;
  }

  /** It has something to compress, now or later. */
  has(job: JobLog): boolean {
    return this.#queue.has(job) || this.#waiting.has(job);
  }

  later(job: JobLog): void {
    const { sealAtMs } = job;
    if (sealAtMs === null || this.#closed) return;
    const { clock } = this.#options;
    const pauseMs = sealAtMs - clock.now();
    if (pauseMs <= 0) {
      this.#queue.add(job);
      this.#start();
      return;
    }
    this.#waiting.add(job);
    this.#timer ??= clock.setTimer(pauseMs, () => {
      this.#timer = undefined;
      const jobs = [...this.#waiting];
      this.#waiting.clear();
      for (const one of jobs) this.later(one);
    });
  }

  #start(): void {
    this.#sealing ??= this.#sealAll().finally(() => {
      this.#sealing = undefined;
      // What was queued after the last one was done and before we heard of it.
      if (this.#queue.size > 0 && !this.#closed) this.#start();
    });
  }

  /** One at a time, so that compression leaves a core for what arrives. */
  async #sealAll(): Promise<void> {
    const { log } = this.#options;
    for (const job of this.#queue) {
      if (this.#closed) return;
      // First, so that a segment that closes meanwhile queues it again.
      this.#queue.delete(job);
      job.users++;
      try {
        await job.seal();
        this.later(job);
      } catch (error) {
        // The open form stays readable; the next round or sweep tries again.
        log.warn({ folder: job.folder, err: error }, 'cannot compress a log yet');
      } finally {
        job.users--;
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#sealing;
  }
}
