/**
 * The connector's talk with the controller: one call is always held for commands, results go in
 * calls of their own. It dials; nothing dials in. Whatever breaks is tried again for ever.
 */
import { sleep, type Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import { CONNECTOR_LIMITS, type ConnectorResult } from '../model/connector.ts';
import type { ExchangeReply, ExchangeRequest } from '../protocol/connector.ts';
import { ApiError } from '../protocol/http.ts';
import { Runner, type Shell } from './runner.ts';

export interface ConnectorOptions {
  site: string;
  /** One call of the controller. */
  exchange: (request: ExchangeRequest, signal: AbortSignal) => Promise<ExchangeReply>;
  shell: Shell;
  clock: Clock;
  random: Random;
  log: Log;
  /** Once, when the controller has answered for the first time. */
  onAccepted?: () => void;
  /** It was refused before it was ever accepted: what the user gave is wrong. */
  onRefused: (refusal: ApiError) => void;
}

const RETRY_FIRST_MS = 250;
const RETRY_MOST_MS = 3_000;
/** Calls that find nothing are made no faster than this, whatever the controller holds them for. */
const CALLS_APART_MS = 200;
/** Results that are kept while the controller is away; by then it has given up the oldest. */
const KEPT_BYTES = 8 * CONNECTOR_LIMITS.resultBytes;
const REFUSALS = new Set([400, 401, 403, 404, 501]);
const NEVER_TAKEN = new Set([400, 413]);

export function startConnector(options: ConnectorOptions): { close(): Promise<void> } {
  const connector = new Connector(options);
  return { close: () => connector.close() };
}

class Connector {
  readonly #options: ConnectorOptions;
  readonly #name: string;
  readonly #runner: Runner;
  readonly #closing = new AbortController();
  readonly #kept: { result: ConnectorResult; bytes: number }[] = [];
  #keptBytes = 0;
  #sending = false;
  #accepted = false;
  #inContact = true;

  constructor(options: ConnectorOptions) {
    this.#options = options;
    this.#name = options.random.hex(8);
    const { shell, clock } = options;
    this.#runner = new Runner({ shell, clock, onResult: (result) => this.#keep(result) });
    void this.#untilClosed(() => this.#fetch());
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#runner.close();
  }

  async #fetch(): Promise<boolean> {
    const { clock } = this.#options;
    const begunMs = clock.bootMs();
    // After a break it does not wait: that the controller answers is news.
    const { commands } = await this.#exchange([], this.#accepted && this.#inContact);
    this.#runner.start(commands);
    const tookMs = clock.bootMs() - begunMs;
    if (commands.length === 0 && tookMs < CALLS_APART_MS) {
      await sleep(clock, CALLS_APART_MS - tookMs);
    }
    return true;
  }

  #keep(result: ConnectorResult): void {
    const bytes = Buffer.byteLength(JSON.stringify(result));
    this.#kept.push({ result, bytes });
    this.#keptBytes += bytes;
    while (this.#keptBytes > KEPT_BYTES) this.#drop(1);
    if (this.#sending) return;
    this.#sending = true;
    void this.#untilClosed(() => this.#send()).finally(() => (this.#sending = false));
  }

  /** As many as fit into one call; false: there is nothing left to send. */
  async #send(): Promise<boolean> {
    const batch: ConnectorResult[] = [];
    let bytes = 0;
    for (const one of this.#kept) {
      bytes += one.bytes;
      const isFull =
        bytes > CONNECTOR_LIMITS.resultBytes || batch.length === CONNECTOR_LIMITS.results;
      if (batch.length > 0 && isFull) break;
      batch.push(one.result);
    }
    if (batch.length === 0) return false;
    const sent = new Set(batch.map(({ id }) => id));
    const forget = (): void => {
      const count = this.#kept.findIndex(({ result }) => !sent.has(result.id));
      this.#drop(count < 0 ? this.#kept.length : count);
    };
    try {
      const { commands } = await this.#exchange(batch, false);
      forget();
      this.#runner.start(commands);
    } catch (error) {
      // It will never be taken: to the controller it is lost, and others must not wait for it.
      if (!(error instanceof ApiError && NEVER_TAKEN.has(error.status))) throw error;
      this.#options.log.error({ err: error, results: batch.length }, 'results were refused');
      forget();
    }
    return this.#kept.length > 0;
  }

  #drop(count: number): void {
    for (const { bytes } of this.#kept.splice(0, count)) this.#keptBytes -= bytes;
  }

  async #exchange(results: ConnectorResult[], wait: boolean): Promise<ExchangeReply> {
    const { site, exchange, log, onAccepted } = this.#options;
    const request = { site, connector: this.#name, results, wait };
    const reply = await exchange(request, this.#closing.signal);
    if (!this.#accepted) onAccepted?.();
    else if (!this.#inContact) log.info({ site }, 'the controller answers again');
    this.#accepted = true;
    this.#inContact = true;
    return reply;
  }

  /** Takes one step after the other, with longer and longer pauses where they fail. */
  async #untilClosed(step: () => Promise<boolean>): Promise<void> {
    const { clock, random } = this.#options;
    let pauseMs = RETRY_FIRST_MS;
    while (!this.#closing.signal.aborted) {
      try {
        if (!(await step())) return;
        pauseMs = RETRY_FIRST_MS;
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        this.#tell(error);
        // Many that were cut off together should not come back together.
        await sleep(clock, pauseMs * (0.5 + random.next()));
        pauseMs = Math.min(RETRY_MOST_MS, pauseMs * 2);
      }
    }
  }

  #tell(error: unknown): void {
    const { site, log, onRefused } = this.#options;
    if (!this.#accepted && error instanceof ApiError && REFUSALS.has(error.status)) {
      this.#closing.abort();
      onRefused(error);
      return;
    }
    if (this.#inContact) log.warn({ site, err: error }, 'no contact with the controller');
    this.#inContact = false;
  }
}
