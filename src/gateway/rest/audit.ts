/** /v1/audit: who looked into what and changed what. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import { eventView, pageQuery } from '../../protocol/jobs.ts';
import type { App } from '../app.ts';
import { list, page } from './envelope.ts';

export function auditRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/audit',
    config: { access: 'audit:read' },
    schema: {
      tags: ['audit'],
      operationId: 'listAudit',
      summary: 'Who looked into what and changed what, the newest first',
      querystring: pageQuery,
      response: { 200: list(eventView) },
    },
    handler: async ({ principal, query }) => page(await coordinator.listAudit(principal, query)),
  });
}
