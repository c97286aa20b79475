/**
 * Sends what attempts write to the controller. The attempts' own files are the spool: nothing is
 * copied, an agent that restarts goes on from the last acknowledged offset, and what is sent twice
 * is dropped there. One request is in flight at a time; the next is filled when it is answered,
 * with what is new by then, so that a line waits for one request and not for a queue of them.
 */
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { systemRandom, type Random } from '../lib/random.ts';
import type { LogAck } from '../protocol/agent.ts';
import { SpooledAttempt } from './spool/attempt.ts';
import { SpoolBatch, type Filled } from './spool/batch.ts';
import { fillBatch } from './spool/fill.ts';
import { SPOOL_LIMITS, type SpoolLimits } from './spool/limits.ts';
import { createWakeUp, type WakeUp } from './spool/wakeUp.ts';

/**
 * Two files of an attempt that are to be sent: its output, or what is measured of it. `ended`: they
 * will not grow any more.
 */
export interface SpoolAttempt {
  uid: string;
  stdoutPath: string;
  stderrPath: string;
  /** The paths are those of its metrics, by itself and by the agent, in place of its output. */
  metrics?: boolean;
  /** Where the acknowledged offsets are remembered; lies beside the files and goes with them. */
  offsetsPath: string;
  ended: boolean;
}

/** By what a spool knows them; an attempt with metrics has two. */
export function spoolKey({ uid, metrics }: Pick<SpoolAttempt, 'uid' | 'metrics'>): string {
  return metrics ? `${uid}/metrics` : uid;
}

export interface SpoolSource {
  /** Every attempt whose files are still there. */
  list(): SpoolAttempt[];
}

export interface SpoolOptions {
  source: SpoolSource;
  /**
   * Posts a body of log frames; resolves with the acknowledgements, in the order of its chunks.
   * Then the body is filled anew.
   */
  send(body: Uint8Array): Promise<LogAck[]>;
  clock: Clock;
  log: Log;
  random?: Random;
  limits?: Partial<SpoolLimits>;
}

export interface Spool {
  /** The source has attempts it had not, or some ended. */
  changed(): void;
  /** All output of an ended attempt is on the controller's disk: its files may go. */
  drained(key: string): boolean;
  whenDrained(key: string): Promise<void>;
  /** Ends after the request in flight, without waiting for the rest. */
  close(): Promise<void>;
}

export function createSpool(options: SpoolOptions): Spool {
  return new FileSpool(options);
}

class FileSpool implements Spool {
  readonly #options: SpoolOptions;
  readonly #limits: SpoolLimits;
  readonly #random: Random;
  readonly #wakeUp: WakeUp;
  /** Woken by closing only: new output is no reason to try sooner. */
  readonly #retry: WakeUp;
  readonly #batch: SpoolBatch;
  /** In the order of their turns. */
  readonly #attempts = new Map<string, SpooledAttempt>();
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();
  readonly #running: Promise<void>;
  #remembering: Promise<void> | undefined;
  #rememberedAtMs = 0;
  #sourceChanged = true;
  #listedAtMs = 0;
  #closed = false;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#limits = { ...SPOOL_LIMITS, ...options.limits };
    this.#random = options.random ?? systemRandom;
    this.#wakeUp = createWakeUp(options.clock);
    this.#retry = createWakeUp(options.clock);
    this.#batch = new SpoolBatch(this.#limits.batchBytes);
    this.#running = this.#run();
  }

  changed(): void {
    this.#sourceChanged = true;
    this.#wakeUp.wake();
  }

  drained(key: string): boolean {
    return this.#attempts.get(key)?.phase === 'drained';
  }

  whenDrained(key: string): Promise<void> {
    if (this.drained(key)) return Promise.resolve();
    const known = this.#waiting.get(key) ?? Promise.withResolvers<void>();
    this.#waiting.set(key, known);
    return known.promise;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wakeUp.wake();
    this.#retry.wake();
    await this.#running;
    await this.#remembering;
    await this.#rememberAll();
    for (const attempt of this.#attempts.values()) {
      attempt.unwatchFiles();
      attempt.closeFiles();
    }
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#flush();
      } catch (error) {
        // Nothing else would ever send this machine's output: start over.
        this.#options.log.error({ err: error }, 'the log spool met an error');
        await this.#retry.sleep(this.#limits.longestRetryMs);
      }
    }
  }

  async #flush(): Promise<void> {
    const nowMs = this.#options.clock.bootMs();
    this.#followSource(nowMs);
    const isFull = fillBatch({
      attempts: this.#attempts,
      batch: this.#batch,
      limits: this.#limits,
      nowMs,
      wallMs: this.#options.clock.now(),
      log: this.#options.log,
      grew: (attempt) => this.#grew(attempt),
      finish: (attempt) => this.#finish(attempt),
    });
    if (this.#batch.filled.length > 0) await this.#deliver(this.#batch);
    this.#rememberLater(nowMs);
    if (!isFull) await this.#wakeUp.sleep(this.#pauseMs());
  }

  #followSource(nowMs: number): void {
    if (!this.#sourceChanged && nowMs - this.#listedAtMs < this.#limits.recheckMs) return;
    this.#sourceChanged = false;
    this.#listedAtMs = nowMs;
    const gone = new Set(this.#attempts.keys());
    for (const found of this.#options.source.list()) {
      const key = spoolKey(found);
      gone.delete(key);
      const known = this.#attempts.get(key);
      if (known === undefined) this.#add(found, nowMs);
      else if (found.ended && !known.ended) {
        known.ended = true;
        this.#grew(known);
      }
    }
    for (const key of gone) this.#remove(key);
  }

  #add(found: SpoolAttempt, nowMs: number): void {
    const attempt = new SpooledAttempt(found, nowMs);
    try {
      attempt.recall();
    } catch (error) {
      this.#options.log.warn({ uid: found.uid, err: error }, 'log offsets unreadable: sends all');
    }
    this.#attempts.set(attempt.key, attempt);
  }

  #remove(key: string): void {
    const attempt = this.#attempts.get(key);
    this.#attempts.delete(key);
    attempt?.unwatchFiles();
    attempt?.closeFiles();
    this.#settle(key);
  }

  #finish(attempt: SpooledAttempt): void {
    attempt.phase = 'drained';
    attempt.unwatchFiles();
    attempt.closeFiles();
    this.#settle(attempt.key);
  }

  #settle(key: string): void {
    this.#waiting.get(key)?.resolve();
    this.#waiting.delete(key);
  }

  #grew(attempt: SpooledAttempt): void {
    if (attempt.phase !== 'watched') return;
    attempt.phase = 'growing';
    attempt.grewAtMs = this.#options.clock.bootMs();
    attempt.unwatchFiles();
    this.#wakeUp.wake();
  }

  #pauseMs(): number {
    const nowMs = this.#options.clock.bootMs();
    let pauseMs = this.#limits.recheckMs;
    for (const attempt of this.#attempts.values()) {
      if (attempt.phase === 'growing') return this.#limits.flushMs;
      if (attempt.phase === 'watched') pauseMs = Math.min(pauseMs, attempt.dueAtMs - nowMs);
    }
    return Math.max(this.#limits.flushMs, pauseMs);
  }

  /** The same bytes again until they arrive: the controller drops what it had. */
  async #deliver(batch: SpoolBatch): Promise<void> {
    const { filled } = batch;
    const body = batch.body();
    for (let failures = 0; !this.#closed; failures++) {
      try {
        const acks = await this.#options.send(body);
        if (failures > 0) this.#options.log.info({ failures }, 'log output arrives again');
        this.#acknowledge(filled, acks);
        return;
      } catch (error) {
        if (failures === 0) {
          this.#options.log.warn({ err: error }, 'log output cannot be sent now: kept');
        }
        await this.#retry.sleep(this.#retryMs(failures));
      }
    }
  }

  /** Doubling, and spread, so that not all agents of a cluster come back at once. */
  #retryMs(failures: number): number {
    const { retryMs, longestRetryMs } = this.#limits;
    const pauseMs = Math.min(longestRetryMs, retryMs * 2 ** Math.min(failures, 20));
    return pauseMs * (0.5 + this.#random.next() / 2);
  }

  #acknowledge(filled: readonly Filled[], acks: readonly LogAck[]): void {
    const nowMs = this.#options.clock.bootMs();
    // By name and not by place: the answers to a stream's pieces are the same or rise.
    const answers = new Map(acks.map((ack) => [`${ack.uid}/${ack.stream}`, ack.offset]));
    const ends = new Map(filled.map((piece) => [piece.stream, piece]));
    for (const [stream, { chunk }] of ends) {
      const before = stream.acked;
      // Lower than before is right too: the controller may have lost what it had, the file has not.
      stream.acked = answers.get(`${chunk.uid}/${chunk.stream}`) ?? before;
      if (stream.acked !== chunk.offset + chunk.bytes.length) stream.readAt = stream.acked;
      if (stream.acked === before) stream.pausedUntilMs = nowMs + this.#limits.refusedMs;
    }
  }

  #rememberLater(nowMs: number): void {
    if (nowMs - this.#rememberedAtMs < this.#limits.rememberMs) return;
    this.#rememberedAtMs = nowMs;
    this.#remembering ??= this.#rememberAll().finally(() => {
      this.#remembering = undefined;
    });
  }

  async #rememberAll(): Promise<void> {
    for (const attempt of this.#attempts.values()) {
      try {
        await attempt.remember();
      } catch (error) {
        // Without it output is sent once more after a restart; its folder may be gone by now.
        this.#options.log.debug({ uid: attempt.uid, err: error }, 'cannot write log offsets');
      }
    }
  }
}
