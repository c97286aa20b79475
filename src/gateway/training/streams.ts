/** A training's output and metrics as they come: the same follows as elsewhere, its own fields. */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Principal } from '../../model/token.ts';
import type { LogPage, LogQuery } from '../../protocol/coordinator.ts';
import type { AnyRecordView } from '../../protocol/jobs.ts';
import { saysOf, taskIndex, wholeNumber } from '../../protocol/queries.ts';
import { metricSelection, type MetricSample } from '../../protocol/metrics.ts';
import type { App } from '../app.ts';
import { jobParams } from '../rest/envelope.ts';
import { LOG_ROUTE_LIMITS, logEvents } from '../rest/logs.ts';
import { metricEvents } from '../rest/metrics.ts';
import { Follows, type Follow, type LogSource } from '../stream/follow.ts';
import { resumeHeader as headers, type SseEvent, type SseLimits } from '../stream/sse.ts';
import { streams } from './envelope.ts';
import { TRAINING_PREFIX } from './failure.ts';
import { timeText } from './views.ts';

export interface TrainingStreamOptions {
  coordinator: LogSource;
  clock: Clock;
  log: Log;
  limits?: Partial<SseLimits>;
}

const { waitMs, tailLines } = LOG_ROUTE_LIMITS;
const config = { access: 'jobs:read', pace: 'stream' } as const;
const tags = ['training'];

export function trainingStreamRoutes(app: App, options: TrainingStreamOptions): void {
  const { coordinator, clock, log, limits } = options;
  const follows = new Follows({ ...(limits && { limits }), waitMs, clock, log });
  // Otherwise a server that closes waits for its followers.
  app.addHook('preClose', async () => follows.endAll());
  const follow = (
    { principal: who, params }: { principal: Principal; params: { id: string } },
    reply: FastifyReply,
    what: Pick<Follow, 'query' | 'eventsOf'>,
  ): Promise<void> => follows.follow({ source: coordinator, who, job: params.id, reply, ...what });

  app.route({
    method: 'GET',
    url: `${TRAINING_PREFIX}/jobs/:id/logs`,
    config,
    schema: {
      ...{ tags, params: jobParams, headers, response: streams },
      operationId: 'streamTrainingLogs',
      summary: "A job's output until its end (SSE), resumable by Last-Event-ID",
      querystring: z.strictObject({
        task: taskIndex,
        tail: wholeNumber(0, tailLines)
          .optional()
          .describe('Only the last so many lines at first')
          .meta(saysOf(100)),
      }),
    },
    handler: (request, reply) => {
      const { task, tail } = request.query;
      const resumed = request.headers['last-event-id'];
      const query: LogQuery = { after: Number(resumed ?? 0), waitMs: 0 };
      if (task !== undefined) query.task = task;
      // A browser that resumes asks with the same URL: the tail it wanted lies behind it.
      if (tail !== undefined && resumed === undefined) query.tailLines = tail;
      return follow(request, reply, { query, eventsOf: (page) => logEvents(page, recordOf) });
    },
  });

  app.route({
    method: 'GET',
    url: `${TRAINING_PREFIX}/jobs/:id/metrics/stream`,
    config,
    schema: {
      ...{ tags, params: jobParams, headers, response: streams },
      operationId: 'streamTrainingMetrics',
      summary: 'What a job measures until its end (SSE), resumable by Last-Event-ID',
      querystring: metricSelection.pick({ task: true, name: true }),
    },
    handler: (request, reply) => {
      const { task, name } = request.query;
      const after = Number(request.headers['last-event-id'] ?? 0);
      const query: LogQuery = { after, waitMs: 0, metrics: true };
      if (task !== undefined) query.task = task;
      const names = name === undefined ? undefined : new Set([name].flat());
      const filter = { names, sinceMs: undefined, untilMs: undefined };
      const eventsOf = (page: LogPage): SseEvent[] => metricEvents(page, filter, sampleOf);
      return follow(request, reply, { query, eventsOf });
    },
  });
}

function recordOf({ index, atMs, ...same }: AnyRecordView): object {
  return { ...same, task_index: index, timestamp: timeText(atMs) };
}

function sampleOf({ index, atMs, ...same }: MetricSample): object {
  return { ...same, task_index: index, timestamp: timeText(atMs) };
}
