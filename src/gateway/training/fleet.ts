/** The queue and the machines, as the training surface shows them. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import type { App } from '../app.ts';
import { answers, listOf, pageAnswer, pageOf, pageQuery, success } from './envelope.ts';
import { TRAINING_PREFIX } from './failure.ts';
import { clusterOf, nodeOf, queued, queuedOf, trainingCluster, trainingNode } from './views.ts';

const tags = ['training'];

export function trainingFleetRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: `${TRAINING_PREFIX}/queue`,
    config: { access: 'jobs:read' },
    schema: {
      tags,
      operationId: 'trainingQueue',
      summary: 'Jobs that wait, and why',
      querystring: pageQuery,
      response: answers(listOf('queue', queued)),
    },
    handler: async ({ principal, query }) => {
      const page = await coordinator.queue(principal, pageOf(query));
      return pageAnswer('queue', page.items.map(queuedOf), page);
    },
  });

  app.route({
    method: 'GET',
    url: `${TRAINING_PREFIX}/cluster`,
    config: { access: 'fleet:read' },
    schema: {
      tags,
      operationId: 'trainingCluster',
      summary: 'This cluster',
      response: answers(trainingCluster),
    },
    handler: async ({ principal }) => success(clusterOf(await coordinator.cluster(principal))),
  });

  app.route({
    method: 'GET',
    url: `${TRAINING_PREFIX}/cluster/nodes`,
    config: { access: 'fleet:read' },
    schema: {
      tags,
      operationId: 'listTrainingNodes',
      summary: 'The machines that joined',
      querystring: pageQuery,
      response: answers(listOf('nodes', trainingNode)),
    },
    handler: async ({ principal, query }) => {
      const page = await coordinator.listWorkers(principal, pageOf(query));
      return pageAnswer('nodes', page.items.map(nodeOf), page);
    },
  });
}
