/** GET /v1/jobs/{id}/logs: a page of records as JSON, or all and what is to come as SSE. */
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Principal } from '../../model/token.ts';
import type { LogPage, LogQuery } from '../../protocol/coordinator.ts';
import { logRecord, type AnyRecordView } from '../../protocol/jobs.ts';
import { queryTime, saysOf, taskIndex, wholeNumber } from '../../protocol/queries.ts';
import { timeOf } from '../../protocol/times.ts';
import { Follows, type LogSource } from '../stream/follow.ts';
import { describedEvent, resumeHeader, type SseEvent, type SseLimits } from '../stream/sse.ts';
import { jobParams } from './envelope.ts';

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal;
  }
}

interface LogRouteLimits {
  /** Lines a `tail` may ask for. */
  tailLines: number;
  /** How long the controller may hold one read of a follow, and it may outlive its client. */
  waitMs: number;
}

export const LOG_ROUTE_LIMITS: Readonly<LogRouteLimits> = {
  tailLines: 100_000,
  waitMs: 10_000,
};

export interface LogRouteOptions {
  coordinator: LogSource;
  clock: Clock;
  log: Log;
  limits?: Partial<LogRouteLimits & SseLimits>;
}

type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What the gateway's own hooks read of a route: who may call it, and that it has no deadline. */
const ROUTE_CONFIG = { access: 'jobs:read', pace: 'stream' } as const;

const page = z.object({
  data: z.array(logRecord),
  meta: z.object({
    next: z.int().describe('Pass as `after` to go on'),
    complete: z.boolean().describe('Nothing will ever come after this'),
  }),
});

function querySchema(limits: LogRouteLimits) {
  return z.strictObject({
    follow: z
      .enum(['true', 'false'])
      .default('false')
      .describe('true: all there is and what is to come, as events, until the job has ended'),
    task: taskIndex,
    since: queryTime
      .optional()
      .describe('Only output from then on: an ISO 8601 time, or ms since 1970')
      .meta({ examples: ['2026-11-15T10:00:00Z'] }),
    tail: wholeNumber(0, limits.tailLines)
      .optional()
      .describe('Only the last so many lines; not with `after`')
      .meta(saysOf(100)),
    after: wholeNumber(0).optional().describe('Only records with a higher seq').meta(saysOf(0)),
  });
}

export function registerLogRoutes(app: App, options: LogRouteOptions): void {
  const limits = { ...LOG_ROUTE_LIMITS, ...options.limits };
  const { coordinator: source, clock, log } = options;
  const follows = new Follows({ ...limits, limits, clock, log });
  // Otherwise a server that closes waits for its followers.
  app.addHook('preClose', async () => follows.endAll());
  app.get(
    '/v1/jobs/:id/logs',
    {
      config: ROUTE_CONFIG,
      schema: {
        tags: ['jobs'],
        operationId: 'readLogs',
        summary: 'What a job wrote: a page of records, or with `follow` a stream of events',
        params: jobParams,
        headers: resumeHeader,
        querystring: querySchema(limits),
        response: {
          200: {
            description: 'Records; as events `log`, then `end` when nothing more will come',
            content: {
              'application/json': { schema: page },
              'text/event-stream': { schema: describedEvent('log') },
            },
          },
        },
      },
    },
    async (request, reply) => {
      const { follow, task, since, tail, after } = request.query;
      const resumed = request.headers['last-event-id'];
      const query: LogQuery = { after: Number(resumed ?? after ?? 0), waitMs: 0 };
      if (task !== undefined) query.task = task;
      if (since !== undefined) query.sinceMs = timeOf(since);
      if (tail !== undefined && after !== undefined && after > 0) {
        throw new DroverError('INVALID_ARGUMENT', 'tail and after cannot both be given');
      }
      // A browser that resumes asks with the same URL: the tail it wanted lies behind it.
      if (tail !== undefined && resumed === undefined) query.tailLines = tail;
      const who = request.principal;
      const { id: job } = request.params;
      if (follow === 'false') return sendPage(reply, await source.readLogs(who, job, query));
      const eventsOf = (page: LogPage): SseEvent[] => logEvents(page, (record) => record);
      await follows.follow({ source, who, job, query, eventsOf, reply });
      return reply;
    },
  );
}

/** Past the schema: checking every record of a page again costs more than reading them. */
function sendPage(reply: FastifyReply, { records, next, complete }: LogPage): FastifyReply {
  return reply
    .header('content-type', 'application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send({ data: records, meta: { next, complete } });
}

/** `shape` is how a surface shows a record. */
export function logEvents(page: LogPage, shape: (record: AnyRecordView) => object): SseEvent[] {
  const events: SseEvent[] = page.records.map((record) => ({
    id: record.seq,
    event: 'log',
    data: JSON.stringify(shape(record)),
  }));
  const end = { id: page.next, event: 'end', data: JSON.stringify({ next: page.next }) };
  if (page.complete) events.push(end);
  // What was looked at and not wanted need not be looked at again after a reconnect.
  else if (page.next > (page.records.at(-1)?.seq ?? 0)) events.push({ id: page.next });
  return events;
}
