/**
 * WebSockets as the tunnel and exec use them: connect with readable errors, read with
 * back-pressure.
 */
import { WebSocket, type RawData } from 'ws';
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { DroverError, ERRORS, type ErrorCode } from '../../lib/errors.ts';
import { shownCertificate } from '../clientTls.ts';
import { isUntrusted, UNTRUSTED_HINT } from '../untrusted.ts';
import { keepAlive } from './keepAlive.ts';
import { TUNNEL_LIMITS } from './limits.ts';

const HANDSHAKE_TIMEOUT_MS = 20_000;
/** Of a refusal's body: a problem document is small. */
const PROBLEM_BYTES = 16 * 1024;
/** Messages read ahead of the consumer before the socket is paused. */
const READ_AHEAD_MESSAGES = 4;

const problem = z.looseObject({
  code: z.string(),
  detail: z.string().optional(),
  hint: z.string().optional(),
});

export interface ConnectOptions {
  url: string;
  protocol: string;
  headers: Record<string, string>;
  maxMessageBytes: number;
}

/**
 * `adopt` is called within the open event, because a message may follow in the same tick. Refusals
 * become the DroverError that the server sent.
 */
export function connectWebSocket<Result>(
  options: ConnectOptions,
  adopt: (socket: WebSocket) => Result,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(webSocketUrl(options.url), [options.protocol], {
      headers: options.headers,
      maxPayload: options.maxMessageBytes,
      perMessageDeflate: false,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      ...shownCertificate(),
    });
    const failed = (cause: Error): void =>
      reject(
        new DroverError('UNAVAILABLE', `cannot connect to ${options.url}: ${reasonOf(cause)}`, {
          hint: isUntrusted((cause as NodeJS.ErrnoException).code)
            ? UNTRUSTED_HINT
            : 'see whether the URL is right and the server is up',
          cause,
        }),
      );
    socket.once('error', failed);
    socket.once('unexpected-response', (_request, response) => {
      readRefusal(response).then(reject, failed);
    });
    socket.once('open', () => {
      socket.off('error', failed);
      try {
        resolve(adopt(socket));
      } catch (error) {
        socket.terminate();
        reject(error);
      }
    });
  });
}

function webSocketUrl(url: string): string {
  return url.replace(/^http/, 'ws');
}

/** An AggregateError (localhost on two addresses) has no message of its own. */
function reasonOf(error: Error & { code?: string }): string {
  return error.message || error.code || error.name;
}

async function readRefusal(response: IncomingMessage): Promise<DroverError> {
  let body = '';
  for await (const piece of response.setEncoding('utf8')) {
    body += String(piece);
    if (body.length > PROBLEM_BYTES) break;
  }
  const parsed = problem.safeParse(jsonOrUndefined(body));
  const status = response.statusCode ?? 0;
  if (!parsed.success) return new DroverError(codeOf(status), `the server answered ${status}`);
  const { code, detail, hint } = parsed.data;
  const known = Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : codeOf(status);
  return new DroverError(known, detail ?? `the server answered ${status}`, hint ? { hint } : {});
}

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function codeOf(status: number): ErrorCode {
  const codes = Object.keys(ERRORS) as ErrorCode[];
  return codes.find((code) => ERRORS[code].status === status) ?? 'UNAVAILABLE';
}

export type WebSocketMessage =
  | { text: string; bytes?: undefined }
  | { text?: undefined; bytes: Buffer };

/**
 * Listens at once; pauses the socket when the consumer is slow; ends when the socket has closed.
 */
export function webSocketReader(
  socket: WebSocket,
): AsyncGenerator<WebSocketMessage, void, undefined> {
  const queue: WebSocketMessage[] = [];
  let closed = false;
  let wake: (() => void) | undefined;
  socket.on('message', (data, isBinary) => {
    queue.push(isBinary ? { bytes: asBuffer(data) } : { text: asBuffer(data).toString('utf8') });
    if (queue.length >= READ_AHEAD_MESSAGES) socket.pause();
    wake?.();
  });
  // Its `close` follows and is what ends the reading.
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
    wake?.();
  });
  return (async function* read() {
    for (;;) {
      const message = queue.shift();
      if (message !== undefined) {
        if (queue.length === 0 && socket.isPaused) socket.resume();
        yield message;
      } else if (closed) {
        return;
      } else {
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
  })();
}

function asBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/** Resolves when the message left the process, so that a slow reader at the other end is felt. */
export function sendMessage(socket: WebSocket, message: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(message, (error) => (error ? reject(error) : resolve()));
  });
}

/** Ends the socket of a peer that vanished without a word. */
export function watchPeer(socket: WebSocket, clock: Clock): void {
  const watch = keepAlive({
    clock,
    intervalMs: TUNNEL_LIMITS.pingIntervalMs,
    silentPings: TUNNEL_LIMITS.silentPings,
    ping() {
      // While we are not reading, silence says nothing about the peer.
      if (socket.isPaused) watch.heard();
      socket.ping();
    },
    dead: () => socket.terminate(),
  });
  socket.on('message', () => watch.heard());
  socket.on('pong', () => watch.heard());
  socket.on('close', () => watch.stop());
}
