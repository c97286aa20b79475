/** /v1/cluster: this installation at a glance. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import { clusterView } from '../../protocol/fleet.ts';
import type { App } from '../app.ts';
import { found, one } from './envelope.ts';

export function clusterRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/cluster',
    config: { access: 'fleet:read' },
    schema: {
      tags: ['cluster'],
      operationId: 'cluster',
      summary: 'This cluster',
      response: { 200: one(clusterView) },
    },
    handler: async ({ principal }) => found(await coordinator.cluster(principal)),
  });
}
