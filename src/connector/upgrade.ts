/** An agent's tunnel through the relay: once the gateway has agreed, bytes pass as they are. */
import { STATUS_CODES, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { passedHeaders } from './headers.ts';
import { problemText, UNKNOWN, UNREACHABLE, type Refusal } from './problem.ts';
import type { Dial, ReachNotes } from './relay.ts';

interface PassedUpgrade {
  incoming: IncomingMessage;
  socket: Duplex;
  head: Buffer;
  /** Undefined: this one is not passed on. */
  dial: Dial | undefined;
  silenceMs: number;
  reached: ReachNotes;
}

export function passUpgrade(upgrade: PassedUpgrade): void {
  const { incoming, socket, head, dial, silenceMs, reached } = upgrade;
  // Its close follows, and ends the other side.
  socket.on('error', () => undefined);
  if (!dial) {
    refuse(socket, UNKNOWN, incoming);
    return;
  }
  const asked = { connection: 'Upgrade', upgrade: 'websocket' };
  const headers: OutgoingHttpHeaders = { ...passedHeaders(incoming), ...asked };
  // A connection of its own: what was upgraded does not go back to the others.
  const upstream = dial(incoming, { agent: false, headers });
  socket.on('close', () => upstream.destroy());
  upstream.on('error', (error) => {
    if (socket.destroyed) return;
    reached.failed(error);
    refuse(socket, UNREACHABLE, incoming);
  });
  upstream.on('response', (response) => {
    reached.answered();
    socket.write(headOf(response, { ...passedHeaders(response), connection: ['close'] }));
    response.on('close', () => socket.end());
    response.pipe(socket);
  });
  upstream.on('upgrade', (response, other, otherHead) => {
    reached.answered();
    const agreed = { connection: ['Upgrade'], upgrade: [response.headers.upgrade ?? 'websocket'] };
    socket.write(headOf(response, { ...passedHeaders(response), ...agreed }));
    socket.write(otherHead);
    other.write(head);
    join(socket as Socket, other, silenceMs);
  });
  upstream.end();
}

function join(one: Socket, other: Socket, silenceMs: number): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    // Both ends ping each other, so one that is silent for long is gone.
    from.setTimeout(silenceMs, () => from.destroy());
    from.setNoDelay(true);
    from.on('error', () => undefined);
    from.on('close', () => to.destroy());
    from.pipe(to);
  }
}

function headOf(response: IncomingMessage, headers: Record<string, string[]>): string {
  const { statusCode = 502, statusMessage = '' } = response;
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    values.map((value) => `${name}: ${value}`),
  );
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, '', ''].join('\r\n');
}

function refuse(socket: Duplex, refusal: Refusal, { url }: IncomingMessage): void {
  const text = problemText(refusal, url);
  socket.end(
    [
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}`,
      'content-type: application/problem+json',
      `content-length: ${Buffer.byteLength(text)}`,
      'connection: close',
      '',
      text,
    ].join('\r\n'),
  );
}
