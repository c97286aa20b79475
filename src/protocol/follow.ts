/** Streams of a job, its log and its metrics, followed over however many connections it takes. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  ApiError,
  asConnectionError,
  call,
  mayPass,
  retryPauseMs,
  send,
  type Call,
  type HttpOptions,
  type Problem,
} from './http.ts';
import type { LogRecordView } from './jobs.ts';
import type { MetricSample } from './metrics.ts';
import { readEvents, type SseEvent } from './sse.ts';

interface FollowOptions {
  signal?: AbortSignal | undefined;
  /** Told each time the stream broke and is opened again. */
  onReconnect?: ((error: unknown) => Promise<void>) | undefined;
}

export interface LogOptions extends FollowOptions {
  /** Only this task's index. */
  task?: number | undefined;
  sinceMs?: number | undefined;
  /** At most this many lines before the end. */
  tail?: number | undefined;
}

export interface MetricOptions {
  /** Only this task's index. */
  task?: number | undefined;
  name?: string | undefined;
  since?: number | undefined;
  until?: number | undefined;
  /** Points of a series: more are summed up. */
  maxPoints?: number | undefined;
}

export interface FollowMetricOptions extends Omit<MetricOptions, 'maxPoints'>, FollowOptions {}

/** How long a broken stream is reopened: a controller may be away for minutes. */
const FOLLOW_RETRY_WINDOW_MS = 600_000;

/** What is there now, page by page. */
export async function* readLogs(
  options: HttpOptions,
  path: string,
  query: LogOptions,
): AsyncGenerator<LogRecordView> {
  let after = 0;
  for (;;) {
    const request = { query: logParameters(query, after), signal: query.signal };
    const { data, meta } = await call<LogRecordView[]>(options, path, request);
    yield* data;
    const next = Number(meta['next'] ?? after);
    // An empty page that moved on held only what was not asked for.
    if (meta['complete'] === true || next <= after) return;
    after = next;
  }
}

/** Every record once and in order, over however many connections that takes, until the end. */
export async function* followLogs(
  options: HttpOptions,
  path: string,
  query: LogOptions,
): AsyncGenerator<LogRecordView> {
  const events = follow(options, path, query, {
    kind: 'log',
    // Where to go on is in Last-Event-ID; a tail would skip what was missed in between.
    query: (after) => ({ ...logParameters(query, after), after: undefined, follow: true }),
    seqOf: ({ data }) => (JSON.parse(data) as LogRecordView).seq,
  });
  for await (const { data } of events) yield JSON.parse(data) as LogRecordView;
}

/** The samples of one event came in together. */
export async function* followMetrics(
  options: HttpOptions,
  path: string,
  { signal, onReconnect, ...query }: FollowMetricOptions,
): AsyncGenerator<MetricSample> {
  const events = follow(
    options,
    path,
    { signal, onReconnect },
    { kind: 'metrics', query: () => query, seqOf: ({ id }) => Number(id) },
  );
  for await (const { data } of events) yield* JSON.parse(data) as MetricSample[];
}

interface Followed {
  kind: 'log' | 'metrics';
  query: (after: number) => NonNullable<Call['query']>;
  seqOf: (event: SseEvent) => number;
}

async function* follow(
  options: HttpOptions,
  path: string,
  { signal, onReconnect }: FollowOptions,
  { kind, query, seqOf }: Followed,
): AsyncGenerator<SseEvent> {
  let after = 0;
  let failures = 0;
  let brokenAtMs = Number.POSITIVE_INFINITY;
  for (;;) {
    try {
      const response = await openStream(options, path, { query: query(after), signal }, after);
      brokenAtMs = Number.POSITIVE_INFINITY;
      for await (const event of streamEvents(options, response, signal)) {
        failures = 0;
        if (event.event === 'end') return;
        if (event.event === 'problem') throw streamProblem(event.data);
        if (event.event !== kind) continue;
        const seq = seqOf(event);
        if (seq <= after) continue;
        after = seq;
        yield event;
      }
    } catch (error) {
      brokenAtMs = Math.min(brokenAtMs, performance.now());
      const late = performance.now() - brokenAtMs > FOLLOW_RETRY_WINDOW_MS;
      if (signal?.aborted || late || !mayPass(error)) throw error;
      await onReconnect?.(error);
    }
    await delay(retryPauseMs(failures++), undefined, { signal });
  }
}

/** Too late for an HTTP status, so the stream carries it. */
function streamProblem(data: string): ApiError {
  const problem = JSON.parse(data) as Problem & { status?: number };
  return new ApiError(problem.status ?? 500, problem);
}

function openStream(
  options: HttpOptions,
  path: string,
  request: Call,
  after: number,
): Promise<Response> {
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (after > 0) headers['last-event-id'] = String(after);
  return send(options, path, { ...request, headers });
}

async function* streamEvents(
  options: HttpOptions,
  response: Response,
  signal: AbortSignal | undefined,
): AsyncGenerator<SseEvent> {
  if (!response.body) return;
  try {
    yield* readEvents(response.body);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw asConnectionError(options, error, signal);
  }
}

function logParameters(query: LogOptions, after: number) {
  return {
    task: query.task,
    since: query.sinceMs,
    tail: after > 0 ? undefined : query.tail,
    after: after > 0 ? after : undefined,
  };
}
