/**
 * An open loop: requests come at a rate whatever becomes of them, as many independent clients send
 * them. One that finds every connection waiting for an answer is not sent and counted as such: a
 * server that lets its clients hang cannot make the load look smaller.
 */
import { performance } from 'node:perf_hooks';
import { Connection, type RequestShape } from '../jobs/support/loader.ts';

/** Arrivals are looked for so often; latencies count from when a request was due. */
const TICK_MS = 1;

export interface OpenLoopOptions {
  port: number;
  request: RequestShape;
  connections: number;
  perSecond: number;
  warmupSeconds: number;
  seconds: number;
}

/** Of the measured seconds only, except `allAccepted`. */
export interface OpenLoopResult {
  offered: number;
  accepted: number;
  refused: number;
  /** Answers 5xx. */
  failed: number;
  /** Any other answer. */
  others: number;
  notSent: number;
  /** Of what was accepted, from when it was due. */
  latenciesMs: number[];
  /** Of what was refused. */
  refusalsMs: number[];
  /** With the warm-up's, for comparison with the store. */
  allAccepted: number;
}

export class OpenLoop {
  readonly #options: OpenLoopOptions;
  readonly #idle: Connection[];
  readonly #all: Connection[];
  readonly #result: OpenLoopResult = {
    offered: 0,
    accepted: 0,
    refused: 0,
    failed: 0,
    others: 0,
    notSent: 0,
    latenciesMs: [],
    refusalsMs: [],
    allAccepted: 0,
  };
  #sent = 0;
  #waiting = 0;

  constructor(options: OpenLoopOptions) {
    const { port, request, connections } = options;
    this.#options = options;
    this.#all = Array.from({ length: connections }, () => new Connection(port, request));
    this.#idle = [...this.#all];
  }

  async run(): Promise<OpenLoopResult> {
    const { perSecond, warmupSeconds, seconds } = this.#options;
    const began = performance.now();
    const measuredFrom = began + warmupSeconds * 1000;
    const until = measuredFrom + seconds * 1000;
    const spacingMs = 1000 / perSecond;
    try {
      for (let n = 0, now = began; now < until; now = performance.now()) {
        const due = Math.min(now, until);
        for (; began + n * spacingMs <= due; n++) {
          const dueAt = began + n * spacingMs;
          this.#offer(dueAt, dueAt >= measuredFrom);
        }
        await new Promise((resolve) => setTimeout(resolve, TICK_MS));
      }
      while (this.#waiting > 0) await new Promise((resolve) => setTimeout(resolve, TICK_MS));
      return this.#result;
    } finally {
      for (const connection of this.#all) connection.close();
    }
  }

  #offer(dueAt: number, counts: boolean): void {
    const result = this.#result;
    if (counts) result.offered++;
    const connection = this.#idle.pop();
    if (connection === undefined) {
      if (counts) result.notSent++;
      return;
    }
    this.#waiting++;
    connection.send(this.#sent++, (answer) => {
      this.#waiting--;
      if (answer instanceof Error) throw answer;
      // First in, first out: every connection is used, as many clients would.
      this.#idle.unshift(connection);
      if (answer.status === 201) result.allAccepted++;
      if (counts) this.#count(answer.status, performance.now() - dueAt);
    });
  }

  #count(status: number, tookMs: number): void {
    const result = this.#result;
    if (status === 201) {
      result.accepted++;
      result.latenciesMs.push(tookMs);
    } else if (status === 429) {
      result.refused++;
      result.refusalsMs.push(tookMs);
    } else if (status >= 500) result.failed++;
    else result.others++;
  }
}
