/** /healthz: the process lives. /readyz: the controller takes work. /metrics: both in numbers. */
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import type { App } from '../app.ts';
import type { GatewayMetrics } from '../metrics.ts';
import { problem } from '../openapi.ts';
import { PROBLEM_TYPE, problemOf } from '../problem.ts';
import type { Edge } from '../security/edge.ts';
import { found, one } from './envelope.ts';

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const tags = ['health'];
const loopHealth = z.object({
  name: z.string(),
  periodMs: z.number(),
  lastStartedAtMs: z.number().nullable(),
  lastFinishedAtMs: z.number().nullable(),
  failures: z.int(),
  lastError: z.string().nullable(),
  healthy: z.boolean(),
});
const readiness = z.object({
  ready: z.boolean(),
  reasons: z.array(z.string()),
  loops: z.array(loopHealth),
  warnings: z.array(z.string()).describe('What works and should not stay so'),
});

const { reasons, loops, warnings: warned } = readiness.shape;
const unready = problem.extend({
  reasons: reasons.optional(),
  loops: loops.optional(),
  warnings: warned.optional(),
});

export function healthRoutes(
  app: App,
  coordinator: Coordinator,
  { metrics, edge }: { metrics: GatewayMetrics; edge: Edge },
): void {
  const warnings = [...edge.exposures];
  app.route({
    method: 'GET',
    url: '/healthz',
    config: { access: 'open' },
    schema: {
      tags,
      operationId: 'isAlive',
      summary: 'Whether this process lives',
      response: { 200: one(z.object({ alive: z.literal(true) })) },
    },
    handler: () => Promise.resolve(found({ alive: true as const })),
  });

  app.route({
    method: 'GET',
    url: '/readyz',
    config: { access: 'open' },
    schema: {
      tags,
      operationId: 'isReady',
      summary: 'Whether work can be taken; 503 with the reasons where not',
      response: {
        200: one(readiness),
        503: {
          description: 'Not ready, and why; without reasons where the gateway itself is closing',
          content: { 'application/problem+json': { schema: unready } },
        },
      },
    },
    handler: async (request, reply) => {
      const state = await coordinator.readiness();
      if (state.ready) return found({ ...state, warnings });
      const { reasons, loops } = state;
      const detail = reasons.join('; ') || 'The controller gives no reason';
      const failure = problemOf(new DroverError('UNAVAILABLE', detail), request.id);
      reply.header('content-type', PROBLEM_TYPE);
      return reply.code(503).send({ ...failure, reasons, loops, warnings });
    },
  });

  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'loopback' },
    schema: {
      tags,
      operationId: 'metrics',
      summary: 'Prometheus metrics of controller and gateway',
      response: { 200: { content: { 'text/plain': { schema: z.string() } } } },
    },
    handler: async (_request, reply) => {
      const [controller, own] = await Promise.all([coordinator.metrics(), metrics.text()]);
      const text = controller === '' || controller.endsWith('\n') ? controller : `${controller}\n`;
      return reply.header('content-type', METRICS_TYPE).send(text + own);
    },
  });
}
