/** Follows of what a job writes or what is measured of it: page after page, until its end. */
import type { FastifyReply } from 'fastify';
import { DroverError, ERRORS } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator, LogFollower, LogPage, LogQuery } from '../../protocol/coordinator.ts';
import { polledPages, streamedPages } from './pages.ts';
import { openSse, type SseEvent, type SseOptions, type SseStream } from './sse.ts';

/** A coordinator that is elsewhere is followed by one call; one in this process is asked again. */
export type LogSource = Pick<Coordinator, 'readLogs'> & Partial<LogFollower>;

export interface FollowOptions extends SseOptions {
  /** How long the controller may hold one read of a follow, and it may outlive its client. */
  waitMs: number;
  log: Log;
}

export interface Follow {
  source: LogSource;
  who: Principal;
  job: string;
  query: LogQuery;
  eventsOf: (page: LogPage) => SseEvent[];
  reply: FastifyReply;
}

/** A coordinator that says nothing for so long has accepted the stream, and has nothing yet. */
const ACCEPTED_MS = 1_000;

/** The open follows, so that a gateway that closes can end them. */
export class Follows {
  readonly #options: FollowOptions;
  readonly #streams = new Set<SseStream>();

  constructor(options: FollowOptions) {
    this.#options = options;
  }

  /** Throws while the answer has not begun; later failures are events. Resolves at the end. */
  async follow({ source, who, job, query, eventsOf, reply }: Follow): Promise<void> {
    const { clock, log, waitMs } = this.#options;
    const left = new AbortController();
    // Also while the first page is waited for.
    reply.raw.once('close', () => left.abort(new DroverError('UNAVAILABLE', 'the client left')));
    const { signal } = left;
    let begun = false;
    const pages = source.followLogs
      ? streamedPages({
          open: (from) => source.followLogs!(who, job, from, signal),
          begun: () => begun,
          ...{ query, signal, clock, log },
        })
      : polledPages((from) => source.readLogs(who, job, from), query, waitMs);
    const first = pages.next();
    await this.#firstOrAccepted(first);
    begun = true;
    const stream = this.#open(reply);
    try {
      for (let page = await first; !page.done; page = await pages.next()) {
        if (!(await stream.send(eventsOf(page.value)))) break;
      }
    } catch (error) {
      if (!(error instanceof DroverError)) log.error({ err: error }, 'a follow failed');
      await stream.send([problemEvent(error, reply.request.id)]);
    } finally {
      stream.end();
      left.abort();
      await pages.return(undefined);
    }
  }

  endAll(): void {
    for (const stream of this.#streams) stream.end();
  }

  async #firstOrAccepted(first: Promise<unknown>): Promise<void> {
    const accepted = Promise.withResolvers<void>();
    const timer = this.#options.clock.setTimer(ACCEPTED_MS, accepted.resolve);
    await Promise.race([first, accepted.promise]).finally(() => timer.cancel());
  }

  #open(reply: FastifyReply): SseStream {
    const stream = openSse(reply, this.#options);
    this.#streams.add(stream);
    void stream.whenClosed.then(() => this.#streams.delete(stream));
    return stream;
  }
}

/** Too late for a status: the client learns why, and may resume. */
function problemEvent(error: unknown, requestId: string): SseEvent {
  const code = error instanceof DroverError ? error.code : 'INTERNAL';
  const { status, title } = ERRORS[code];
  // What went wrong inside is for the log.
  const detail = error instanceof DroverError && code !== 'INTERNAL' ? error.message : title;
  return { event: 'problem', data: JSON.stringify({ code, status, title, detail, requestId }) };
}
