/** Answers what is not even HTTP: no request exists yet, so the answer is written by hand. */
import type { ConnectionError, FastifyInstance } from 'fastify';
import type { Socket } from 'node:net';
import { DroverError, type ErrorCode } from '../lib/errors.ts';
import { PROBLEM_TYPE, problemOf } from './problem.ts';
import { RAW_HEADERS } from './security/headers.ts';

interface Answer {
  line: string;
  code: ErrorCode;
  detail: string;
}

const ANSWERS: Record<string, Answer> = {
  HPE_HEADER_OVERFLOW: {
    line: '431 Request Header Fields Too Large',
    code: 'TOO_MANY',
    detail: 'The headers are too large',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    line: '408 Request Timeout',
    code: 'TIMEOUT',
    detail: 'The request was not sent in time',
  },
};

const MALFORMED: Answer = {
  line: '400 Bad Request',
  code: 'INVALID_ARGUMENT',
  detail: 'This is not a valid HTTP request',
};

const SENDING = Symbol('sending');
type SendingSocket = Socket & { [SENDING]?: boolean };

/** Node allows one time for every request; a blob of many gigabytes takes what it takes. */
export function setSending(socket: Socket, sending: boolean): void {
  (socket as SendingSocket)[SENDING] = sending;
}

export function answerClientError(
  this: FastifyInstance,
  error: ConnectionError,
  socket: Socket,
): void {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && (socket as SendingSocket)[SENDING]) return;
  // What broke under TLS cannot be answered any more, and would never end.
  const isBroken = error.code === 'ECONNRESET' || error.code?.startsWith('ERR_SSL');
  if (isBroken || !socket.writable) {
    socket.destroy();
    return;
  }
  const { line, code, detail } = ANSWERS[error.code] ?? MALFORMED;
  const problem = {
    ...problemOf(new DroverError(code, detail), '-'),
    status: Number(line.slice(0, 3)),
  };
  const body = JSON.stringify(problem);
  socket.end(
    `HTTP/1.1 ${line}\r\nconnection: close\r\ncontent-type: ${PROBLEM_TYPE}\r\n${RAW_HEADERS}` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
