/** /v1/cluster: this installation at a glance. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import { clusterAnswer } from '../../protocol/fleet.ts';
import type { App } from '../app.ts';
import type { Edge } from '../security/edge.ts';
import { found, one } from './envelope.ts';

export function clusterRoutes(app: App, coordinator: Coordinator, { exposures }: Edge): void {
  const insecure = exposures.length > 0;
  app.route({
    method: 'GET',
    url: '/v1/cluster',
    config: { access: 'fleet:read' },
    schema: {
      tags: ['cluster'],
      operationId: 'cluster',
      summary: 'This cluster',
      response: { 200: one(clusterAnswer) },
    },
    handler: async ({ principal }) =>
      found({ ...(await coordinator.cluster(principal)), insecure }),
  });
}
