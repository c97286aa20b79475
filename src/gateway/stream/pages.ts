/** A job's pages one after another: asked for in turn, or as a coordinator elsewhere sends them. */
import { sleep, type Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { LogPage, LogQuery } from '../../protocol/coordinator.ts';

export async function* polledPages(
  read: (query: LogQuery) => Promise<LogPage>,
  query: LogQuery,
  waitMs: number,
): AsyncGenerator<LogPage> {
  const { tailLines: _, ...rest } = query;
  for (let page = await read(query); ;) {
    // The next page is read while this one is on its way; a quiet log is waited for meanwhile.
    const ahead = page.complete ? null : read({ ...rest, after: page.next, waitMs });
    // It may fail before anybody looks at it.
    ahead?.catch(() => {});
    yield page;
    if (ahead === null) return;
    page = await ahead;
  }
}

/** A stream that breaks is opened again after this long, doubled each time up to the second. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** Follows outlive a coordinator that is away for this long; then their clients are told. */
const PATIENCE_MS = 60_000;

export interface StreamedOptions {
  open: (query: LogQuery) => AsyncIterable<LogPage>;
  query: LogQuery;
  signal: AbortSignal;
  /** Whether the client was told that its stream has begun: before, a failure is its answer. */
  begun: () => boolean;
  clock: Clock;
  log: Log;
}

/** Goes on behind the last page where the stream breaks, so that nothing is lost or sent twice. */
export async function* streamedPages(options: StreamedOptions): AsyncGenerator<LogPage> {
  const { open, signal, begun, clock, log } = options;
  let { query } = options;
  let pauseMs = FIRST_PAUSE_MS;
  let brokeAtMs: number | undefined;
  for (let quietEnds = 0; quietEnds < 2; quietEnds++) {
    try {
      for await (const sent of open(query)) {
        const page = pageAfter(query.after, sent);
        if (page.records.length > 0) quietEnds = -1;
        brokeAtMs = undefined;
        pauseMs = FIRST_PAUSE_MS;
        yield page;
        if (page.complete) return;
        query = queryAfter(query, page.next);
      }
    } catch (error) {
      if (signal.aborted || !begun() || !isBreak(error)) throw error;
      const nowMs = clock.bootMs();
      brokeAtMs ??= nowMs;
      if (nowMs - brokeAtMs > PATIENCE_MS) throw error;
      log.debug({ after: query.after, error: String(error) }, 'a stream broke; it is resumed');
      quietEnds = -1;
    }
    if (signal.aborted) return;
    await sleep(clock, pauseMs);
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
  }
  // It ended twice without a failure and without anything new: there is nothing more.
  yield { records: [], next: query.after, complete: true };
}

/** The coordinator was away, or had enough of the stream; nothing is wrong with what was asked. */
function isBreak(error: unknown): boolean {
  return error instanceof DroverError && ['UNAVAILABLE', 'TIMEOUT'].includes(error.code);
}

/** Of a page of others: without what was seen, and with a place to go on from. */
function pageAfter(after: number, { records, next, complete }: LogPage): LogPage {
  const fresh = records.filter(({ seq }) => seq > after);
  return { records: fresh, next: Math.max(after, next, fresh.at(-1)?.seq ?? 0), complete };
}

/** The tail is where reading starts; from there on everything is wanted. */
function queryAfter(query: LogQuery, after: number): LogQuery {
  if (after === 0) return query;
  const { tailLines: _, ...rest } = query;
  return { ...rest, after };
}
