/** /v1/jobs/{id}/metrics: what is measured of a job as series, as a download, and as it comes. */
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Coordinator, LogPage, LogQuery } from '../../protocol/coordinator.ts';
import {
  metricSelection,
  metricSeries,
  metricsQuery,
  type MetricSample,
} from '../../protocol/metrics.ts';
import { timeOf } from '../../protocol/times.ts';
import type { App } from '../app.ts';
import { CSV_HEAD, csvOf, samplesOf, SeriesTable, type SampleFilter } from '../metricSamples.ts';
import { Follows, type LogSource } from '../stream/follow.ts';
import { describedEvent, resumeHeader, type SseEvent, type SseLimits } from '../stream/sse.ts';
import { jobParams } from './envelope.ts';

export interface MetricRouteOptions {
  coordinator: LogSource & Pick<Coordinator, 'getJob'>;
  clock: Clock;
  log: Log;
  limits?: Partial<SseLimits>;
}

/** How long the controller may hold one read of a follow, and it may outlive its client. */
const WAIT_MS = 10_000;
/** How long a query waits for the last lines of a job that has ended. */
const TAIL_WAIT_MS = 5000;
const tags = ['jobs'];
const config = { access: 'jobs:read', pace: 'stream' } as const;
const answer = z.object({
  data: z.array(metricSeries),
  meta: z.object({
    skipped: z.int().describe('Lines that are no metrics'),
    next: z.int().describe('As Last-Event-ID of the stream: what comes after these'),
  }),
});

type Selection = z.infer<typeof metricSelection>;
type ReadPage = (query: LogQuery) => Promise<LogPage>;

export function metricRoutes(app: App, options: MetricRouteOptions): void {
  const { coordinator, limits, clock, log } = options;
  const follows = new Follows({ ...(limits && { limits }), waitMs: WAIT_MS, clock, log });
  app.addHook('preClose', async () => follows.endAll());
  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/metrics',
    config,
    schema: {
      ...{ tags, params: jobParams, querystring: metricsQuery, operationId: 'readMetrics' },
      response: {
        200: {
          description: 'Series; every sample where `format` is csv or jsonl',
          content: {
            'application/json': { schema: answer },
            'text/csv': { schema: z.string() },
            'application/x-ndjson': { schema: z.string() },
          },
        },
      },
      summary: 'What is measured of a job: series, or every sample as csv or jsonl',
    },
    handler: async (request, reply) => {
      const { format, maxPoints } = request.query;
      const { id } = request.params;
      const filter = filterOf(request.query);
      const read: ReadPage = (query) => coordinator.readLogs(request.principal, id, query);
      const query = queryOf(request.query, filter, 0);
      // What is wrong with the job is known before the answer begins.
      const { endedAtMs } = await coordinator.getJob(request.principal, id);
      const first = await read(query);
      const untilMs = clock.bootMs() + (endedAtMs === null ? 0 : TAIL_WAIT_MS);
      const pages = eachPage({ read, query, first, untilMs, clock });
      if (format !== 'series') return download(reply, format, pages, filter);
      const table = new SeriesTable(maxPoints);
      let [skipped, next] = [0, 0];
      for await (const page of pages) {
        ({ next } = page);
        for (const record of page.records) {
          const found = samplesOf(record, filter);
          skipped += found.skipped;
          for (const sample of found.samples) table.add(sample);
        }
      }
      return { data: table.list(), meta: { skipped, next } };
    },
  });
  app.route({
    method: 'GET',
    url: '/v1/jobs/:id/metrics/stream',
    config,
    schema: {
      ...{ tags, params: jobParams, headers: resumeHeader, querystring: metricSelection },
      operationId: 'streamMetrics',
      response: {
        200: {
          description: 'Events `metrics`, then `end` when nothing more will come',
          content: { 'text/event-stream': { schema: describedEvent('metrics') } },
        },
      },
      summary: 'What is measured of a job, as it comes (SSE), resumable by Last-Event-ID',
    },
    handler: async (request, reply) => {
      const who = request.principal;
      const filter = filterOf(request.query);
      const after = Number(request.headers['last-event-id'] ?? 0);
      const query = queryOf(request.query, filter, after);
      const eventsOf = (page: LogPage): SseEvent[] => metricEvents(page, filter, asIs);
      const { id: job } = request.params;
      await follows.follow({ source: coordinator, who, job, query, eventsOf, reply });
      return reply;
    },
  });
}

function filterOf({ name, since, until }: Selection): SampleFilter {
  return {
    names: name === undefined ? undefined : new Set([name].flat()),
    sinceMs: since === undefined ? undefined : timeOf(since),
    untilMs: until === undefined ? undefined : timeOf(until),
  };
}

/** What was measured after a time came in after it too. */
function queryOf({ task }: Selection, { sinceMs }: SampleFilter, after: number): LogQuery {
  return {
    ...{ after, waitMs: 0, metrics: true },
    ...(task !== undefined && { task }),
    ...(sinceMs !== undefined && { sinceMs }),
  };
}

/** Of a job that has ended the last lines may still be on their way: they are waited for. */
async function* eachPage({ read, query, first, untilMs, clock }: Pages): AsyncGenerator<LogPage> {
  for (let page = first; ;) {
    yield page;
    const leftMs = untilMs - clock.bootMs();
    if (page.complete || (page.records.length === 0 && leftMs <= 0)) return;
    page = await read({ ...query, after: page.next, waitMs: Math.max(0, leftMs) });
  }
}

interface Pages {
  read: ReadPage;
  query: LogQuery;
  first: LogPage;
  /** On the boot clock. */
  untilMs: number;
  clock: Clock;
}

const CONTENT_TYPES = {
  csv: 'text/csv; charset=utf-8',
  jsonl: 'application/x-ndjson; charset=utf-8',
} as const;

function download(
  reply: FastifyReply,
  format: 'csv' | 'jsonl',
  pages: AsyncIterable<LogPage>,
  filter: SampleFilter,
): FastifyReply {
  const write = format === 'csv' ? csvOf : jsonLineOf;
  async function* body(): AsyncGenerator<string> {
    if (format === 'csv') yield CSV_HEAD;
    for await (const { records } of pages) {
      yield records.map((record) => samplesOf(record, filter).samples.map(write).join('')).join('');
    }
  }
  const stream = Readable.from(body(), { objectMode: false });
  return reply
    .header('content-type', CONTENT_TYPES[format])
    .serializer((payload: unknown) => payload as string)
    .send(stream);
}

const jsonLineOf = (sample: MetricSample): string => `${JSON.stringify(sample)}\n`;

const asIs = (sample: MetricSample): object => sample;

/** One event for each stored record, however many samples: a client resumes between records. */
export function metricEvents(
  page: LogPage,
  filter: SampleFilter,
  shape: (sample: MetricSample) => object,
): SseEvent[] {
  const events: SseEvent[] = [];
  for (const record of page.records) {
    const { samples } = samplesOf(record, filter);
    const id = record.seq;
    if (samples.length === 0) events.push({ id });
    else events.push({ id, event: 'metrics', data: JSON.stringify(samples.map(shape)) });
  }
  const { next, complete } = page;
  if (complete) events.push({ id: next, event: 'end', data: JSON.stringify({ next }) });
  return events;
}
