/**
 * A load generator that costs little, because it shares the processors with what it measures:
 * HTTP/1.1 on plain keep-alive sockets, one request in flight on each, requests built once and
 * only their counter overwritten, responses read no further than status and length.
 */
import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';

/** Stands in a request for a number that is new in each: a key, a sequence number. */
export const COUNTER = '#counter####';
/** Twelve digits from the first on, so that the request keeps its length and JSON its number. */
const COUNTER_BASE = 100_000_000_000;
const REQUEST_LIMIT_MS = 30_000;

export interface RequestShape {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

export interface LoadOptions {
  port: number;
  request: RequestShape;
  connections: number;
  seconds: number;
  /** Before the measured seconds, at the same load. */
  warmupSeconds: number;
}

export interface LoadResult {
  /** Requests that were answered with a 2xx, the warm-up's too. */
  accepted: number;
  perSecond: number;
  latenciesMs: number[];
}

export interface PacedOptions extends LoadOptions {
  perSecond: number;
}

export interface PacedResult extends LoadResult {
  /**
   * How long after it was due each request was sent: the timer's part of the latency. Never
   * negative.
   */
  latenessMs: number[];
}

export class Connection {
  #socket: Socket;
  #request: Buffer;
  #counterAt: number;
  #received: Buffer = Buffer.alloc(0);
  #answered: ((answer: Answer | Error) => void) | undefined;

  constructor(port: number, shape: RequestShape) {
    this.#request = encode(port, shape);
    this.#counterAt = this.#request.indexOf(COUNTER);
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true });
    const late = new Error(`no answer within ${REQUEST_LIMIT_MS} ms`);
    this.#socket.setTimeout(REQUEST_LIMIT_MS, () => this.#socket.destroy(late));
    this.#socket.on('data', (bytes) => this.#take(bytes));
    this.#socket.on('error', (error) => this.#settle(error));
    this.#socket.on('close', () => this.#settle(new Error('the server closed the connection')));
  }

  /** The buffer is reused, which is safe as only one request is ever in flight here. */
  send(n: number, answered: (answer: Answer | Error) => void): void {
    if (this.#socket.destroyed) return answered(new Error('the connection is closed'));
    this.#answered = answered;
    if (this.#counterAt >= 0) {
      this.#request.write(String(COUNTER_BASE + n), this.#counterAt, 'latin1');
    }
    this.#socket.write(this.#request);
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    const headEnd = this.#received.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const head = this.#received.toString('latin1', 0, headEnd);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) return this.#settle(new Error(`no content-length in: ${head}`));
    const end = headEnd + 4 + Number(length);
    if (this.#received.length < end) return;
    const body = this.#received.subarray(headEnd + 4, end);
    this.#received = this.#received.subarray(end);
    this.#settle({ status: Number(head.slice(9, 12)), body });
  }

  #settle(answer: Answer | Error): void {
    const answered = this.#answered;
    this.#answered = undefined;
    answered?.(answer);
  }
}

export interface Answer {
  status: number;
  body: Buffer;
}

function encode(port: number, shape: RequestShape): Buffer {
  const headers = {
    host: `127.0.0.1:${port}`,
    'content-type': 'application/json',
    ...shape.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  lines.push(`content-length: ${Buffer.byteLength(shape.body)}\r\n`);
  const start = `${shape.method} ${shape.path} HTTP/1.1\r\n`;
  return Buffer.from(`${start}${lines.join('')}\r\n${shape.body}`);
}

/** Each connection sends its next request when the last was answered: the most a server can do. */
export async function closedLoop(options: LoadOptions): Promise<LoadResult> {
  const run = new Run(options);
  try {
    const began = performance.now() + options.warmupSeconds * 1000;
    const until = began + options.seconds * 1000;
    const latenciesMs: number[] = [];
    const lanes = run.connections.map(async (connection) => {
      for (let sentAt = performance.now(); sentAt < until; sentAt = performance.now()) {
        await run.call(connection);
        const answeredAt = performance.now();
        if (answeredAt >= began && answeredAt < until) latenciesMs.push(answeredAt - sentAt);
      }
    });
    await Promise.all(lanes);
    return {
      accepted: run.accepted,
      perSecond: latenciesMs.length / options.seconds,
      latenciesMs,
    };
  } finally {
    run.close();
  }
}

/**
 * Requests fall due at a fixed rate whether or not the server keeps up, and a latency counts from
 * when its request was due, so that a stall shows in every request it delayed.
 */
export async function paced(options: PacedOptions): Promise<PacedResult> {
  const run = new Run(options);
  try {
    const spacingMs = 1000 / options.perSecond;
    const warmup = Math.round(options.warmupSeconds * options.perSecond);
    const total = warmup + Math.round(options.seconds * options.perSecond);
    const began = performance.now();
    const latenciesMs: number[] = [];
    const latenessMs: number[] = [];
    let next = 0;
    const lanes = run.connections.map(async (connection) => {
      while (next < total) {
        const n = next++;
        const dueAt = began + n * spacingMs;
        await reach(dueAt);
        if (n >= warmup) latenessMs.push(performance.now() - dueAt);
        await run.call(connection);
        if (n >= warmup) latenciesMs.push(performance.now() - dueAt);
      }
    });
    await Promise.all(lanes);
    const measuredMs = performance.now() - began - options.warmupSeconds * 1000;
    return {
      accepted: run.accepted,
      perSecond: (latenciesMs.length / measuredMs) * 1000,
      latenciesMs,
      latenessMs,
    };
  } finally {
    run.close();
  }
}

/**
 * Returns at the due time or just after. Node cuts a delay to whole milliseconds and counts them
 * from a clock it read earlier, so one timer alone may end more than a millisecond early, and a
 * request sent early would look faster than it was.
 */
async function reach(dueAt: number): Promise<void> {
  for (let left = dueAt - performance.now(); left > 0; left = dueAt - performance.now()) {
    const waitMs = Math.ceil(left);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** The connections of one load and its counter. Anything but a 2xx ends the measurement. */
class Run {
  readonly connections: Connection[];
  accepted = 0;
  #sent = 0;

  constructor(options: LoadOptions) {
    const { port, request, connections } = options;
    this.connections = Array.from({ length: connections }, () => new Connection(port, request));
  }

  call(connection: Connection): Promise<void> {
    return new Promise((resolve, reject) => {
      connection.send(this.#sent++, (answer) => {
        if (answer instanceof Error) reject(answer);
        else if (answer.status < 200 || answer.status > 299) {
          reject(new Error(`status ${answer.status}: ${answer.body.toString().slice(0, 300)}`));
        } else {
          this.accepted++;
          resolve();
        }
      });
    });
  }

  close(): void {
    for (const connection of this.connections) connection.close();
  }
}
