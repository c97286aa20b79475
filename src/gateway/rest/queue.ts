/** /v1/queue: what waits, in the order it will be looked at. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import { pageQuery, queueEntry } from '../../protocol/jobs.ts';
import type { App } from '../app.ts';
import { list, page } from './envelope.ts';

export function queueRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/queue',
    config: { access: 'jobs:read' },
    schema: {
      tags: ['queue'],
      operationId: 'queue',
      summary: 'Jobs that wait, and why',
      querystring: pageQuery,
      response: { 200: list(queueEntry) },
    },
    handler: async ({ principal, query }) => page(await coordinator.queue(principal, query)),
  });
}
