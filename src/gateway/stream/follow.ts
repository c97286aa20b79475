/** Follows of what a job writes or what is measured of it: page after page, until its end. */
import type { FastifyReply } from 'fastify';
import { DroverError, ERRORS } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { LogPage, LogQuery } from '../../protocol/coordinator.ts';
import { openSse, type SseEvent, type SseOptions, type SseStream } from './sse.ts';

export type ReadPage = (query: LogQuery) => Promise<LogPage>;

export interface FollowOptions {
  stream: SseStream;
  read: ReadPage;
  query: LogQuery;
  first: LogPage;
  eventsOf: (page: LogPage) => SseEvent[];
  waitMs: number;
  log: Log;
}

export async function followPages(options: FollowOptions): Promise<void> {
  const { stream, read, first, eventsOf, waitMs, log } = options;
  const { tailLines: _, ...query } = options.query;
  try {
    let page = first;
    for (;;) {
      // The next page is read while this one is on its way; a quiet log is waited for meanwhile.
      const ahead = page.complete ? null : read({ ...query, after: page.next, waitMs });
      // It may fail before anybody looks at it.
      ahead?.catch(() => {});
      if (!(await stream.send(eventsOf(page))) || ahead === null) break;
      page = await ahead;
    }
  } catch (error) {
    if (!(error instanceof DroverError)) log.error({ err: error }, 'a follow failed');
    await stream.send([problemEvent(error)]);
  } finally {
    stream.end();
  }
}

/** Too late for a status: the client learns why, and may resume. */
function problemEvent(error: unknown): SseEvent {
  const code = error instanceof DroverError ? error.code : 'INTERNAL';
  const { status, title } = ERRORS[code];
  const detail = error instanceof DroverError ? error.message : title;
  return { event: 'problem', data: JSON.stringify({ code, status, title, detail }) };
}

/** The open follows, so that a gateway that closes can end them. */
export class Follows {
  readonly #streams = new Set<SseStream>();

  open(reply: FastifyReply, { clock, limits }: SseOptions): SseStream {
    const stream = openSse(reply, { clock, ...(limits === undefined ? {} : { limits }) });
    this.#streams.add(stream);
    void stream.whenClosed.then(() => this.#streams.delete(stream));
    return stream;
  }

  endAll(): void {
    for (const stream of this.#streams) stream.end();
  }
}
