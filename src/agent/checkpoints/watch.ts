/** One attempt's checkpoints while it runs: at intervals, before its deadline, and on demand. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { sleep, type Clock, type Timer } from '../../lib/clock.ts';
import type { CheckpointSpec } from '../../model/jobParts.ts';
import type { Started } from '../runtimes/around.ts';
import { sendSignal } from '../runtimes/processes.ts';
import { CHECKPOINT_FOLDER, type Record } from './record.ts';
import { finishedOf, listIt } from './snapshot.ts';
import { listeners } from './writers.ts';

/** After a signal the directory is looked at this often, and not longer than so. */
const NEWS_LOOK_MS = 200;
const NEWS_LIMIT_MS = 60_000;
/** Timers cannot be longer than 24 days. */
const LONGEST_TIMER_MS = 20 * 86_400_000;

export type Reason = 'interval' | 'deadline' | 'demand' | 'end';

export interface WatchOptions {
  started: Started;
  spec: CheckpointSpec;
  clock: Clock;
  record: () => Record;
  /** Stores and commits what counts now. Never throws: what failed is tried at the next time. */
  save: (reason: Reason) => Promise<void>;
}

export class CheckpointWatch {
  readonly #options: WatchOptions;
  #interval: Timer | undefined;
  #deadline: Timer | undefined;
  #running: Promise<void> | undefined;
  #next: Reason | undefined;
  #ended = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#setInterval();
    this.#setDeadline();
  }

  /** One at a time; what is asked meanwhile comes right after. */
  ask(reason: Reason): void {
    if (this.#ended) return;
    if (this.#running) {
      this.#next = reason;
      return;
    }
    this.#running = this.#run(reason).finally(() => {
      this.#running = undefined;
      const next = this.#next;
      this.#next = undefined;
      if (next) this.ask(next);
    });
  }

  /** No new one begins; resolves when the last is over, so that it cannot overtake the final. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#interval?.cancel();
    this.#deadline?.cancel();
    await this.#running;
  }

  #setInterval(): void {
    const { clock, spec } = this.#options;
    this.#interval = clock.setTimer(Math.min(spec.everyMs, LONGEST_TIMER_MS), () => {
      this.ask('interval');
      this.#setInterval();
    });
  }

  #setDeadline(): void {
    const { clock, spec, started } = this.#options;
    const { timeLimitMs } = started.order;
    if (!timeLimitMs) return;
    // Written by the command's own shim at its start, which an earlier agent may have seen.
    const startedAtMs = statSync(join(started.home, 'pid')).mtimeMs;
    const dueMs = startedAtMs + timeLimitMs - spec.beforeDeadlineMs - clock.now();
    this.#deadline =
      dueMs > LONGEST_TIMER_MS
        ? clock.setTimer(LONGEST_TIMER_MS, () => this.#setDeadline())
        : clock.setTimer(Math.max(0, dueMs), () => this.ask('deadline'));
  }

  async #run(reason: Reason): Promise<void> {
    const { spec } = this.#options;
    const most = reason === 'deadline' ? spec.beforeDeadlineMs : spec.everyMs;
    if (spec.signal !== '') await this.#notify(spec.signal, Math.min(most, NEWS_LIMIT_MS));
    if (!this.#ended) await this.#options.save(reason);
  }

  /** Asks the command, and waits until it has written something. */
  async #notify(signal: NodeJS.Signals, limitMs: number): Promise<void> {
    const { started, clock, record } = this.#options;
    const asked = listeners(started.pids(), signal);
    for (const pid of asked) sendSignal(pid, signal);
    if (asked.length === 0) return;
    const folder = join(started.home, CHECKPOINT_FOLDER);
    const untilMs = clock.bootMs() + limitMs;
    while (!this.#ended && clock.bootMs() < untilMs) {
      const state = { pids: started.pids, unclean: false };
      if (finishedOf(listIt(folder), record().known, state).length > 0) return;
      await sleep(clock, NEWS_LOOK_MS);
    }
  }
}
