/** Server-sent events on a Fastify reply: no faster than the client reads, over when it leaves. */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Clock, Timer } from '../../lib/clock.ts';

export interface SseLimits {
  /** A comment after so much silence: proxies cut connections that look dead. */
  heartbeatMs: number;
  /** A client that takes nothing for so long is cut off; it can resume where it was. */
  stalledMs: number;
  /** A stream is ended after so long, whatever it does; its client resumes by itself. */
  streamMs: number;
  /** How long a client that lost the connection is told to wait. */
  retryMs: number;
}

const SSE_LIMITS: Readonly<SseLimits> = {
  heartbeatMs: 15_000,
  stalledMs: 120_000,
  streamMs: 3_600_000,
  retryMs: 1_000,
};

/** Sent by a browser that comes back. */
export const resumeHeader = z.looseObject({
  'last-event-id': z
    .string()
    .regex(/^\d{1,15}$/, 'is not the id of an event')
    .optional()
    .describe('The id of the last event that came: what follows it is sent')
    .meta({ examples: ['42'] }),
});

/** One event as it is described; `data` is JSON. */
export const describedEvent = (...names: [string, ...string[]]) =>
  z.object({
    id: z.string().optional().describe('Send the last one as Last-Event-ID to go on after it'),
    event: z.enum([...names, 'end', 'problem']).optional(),
    data: z.string().optional().describe('JSON'),
  });

/** Without `data` it only moves the client's last event id. */
export interface SseEvent {
  id?: number;
  event?: string;
  data?: string;
}

export interface SseStream {
  /** Resolves when the client has room for more: true, or false once it is gone. */
  send(events: readonly SseEvent[]): Promise<boolean>;
  readonly isOpen: boolean;
  /** Resolves once, however it ended. */
  readonly whenClosed: Promise<void>;
  end(): void;
}

export interface SseOptions {
  clock: Clock;
  limits?: Partial<SseLimits>;
}

/** Takes the reply over. Errors have to be answered before this. */
export function openSse(reply: FastifyReply, options: SseOptions): SseStream {
  const limits = { ...SSE_LIMITS, ...options.limits };
  const { clock } = options;
  const response = reply.raw;
  const over = Promise.withResolvers<void>();
  let isOpen = true;
  let heartbeat: Timer | undefined;
  /** Ends a send that waits for room. */
  let proceed: (() => void) | undefined;

  const beat = (): void => {
    heartbeat = clock.setTimer(limits.heartbeatMs, () => {
      if (!response.writableNeedDrain) response.write(':\n\n');
      beat();
    });
  };
  const closed = (): void => {
    if (!isOpen) return;
    isOpen = false;
    heartbeat?.cancel();
    lifetime.cancel();
    proceed?.();
    over.resolve();
  };
  const end = (): void => {
    if (isOpen) response.end();
    closed();
  };
  const lifetime = clock.setTimer(limits.streamMs, () => {
    // What a client does not take would keep the connection open.
    if (response.writableNeedDrain) response.destroy();
    end();
  });
  const roomOrGone = async (): Promise<void> => {
    const stalled = clock.setTimer(limits.stalledMs, () => response.destroy());
    await new Promise<void>((resolve) => {
      proceed = resolve;
      response.once('drain', resolve);
    });
    if (proceed) response.off('drain', proceed);
    proceed = undefined;
    stalled.cancel();
  };

  reply.hijack();
  response.on('close', closed);
  // A connection that breaks is a client that left; 'close' follows.
  response.on('error', closed);
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) response.setHeader(name, value);
  }
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  response.write(`retry: ${limits.retryMs}\n\n`);
  // It may have left before anybody listened.
  if (response.destroyed) closed();
  else beat();

  return {
    async send(events) {
      if (!isOpen || events.length === 0) return isOpen;
      heartbeat?.cancel();
      beat();
      if (!response.write(events.map(formatEvent).join(''))) await roomOrGone();
      return isOpen;
    },
    get isOpen() {
      return isOpen;
    },
    whenClosed: over.promise,
    end,
  };
}

function formatEvent({ id, event, data }: SseEvent): string {
  let text = '';
  if (id !== undefined) text += `id: ${id}\n`;
  if (event !== undefined) text += `event: ${event}\n`;
  if (data !== undefined) text += `data: ${oneLine(data)}\n`;
  return `${text}\n`;
}

/** JSON has no line ends, and looking for one of them costs a tenth of looking for three. */
function oneLine(data: string): string {
  if (!data.includes('\n') && !data.includes('\r')) return data;
  return data.replaceAll(/\r\n|\r|\n/g, '\ndata: ');
}
