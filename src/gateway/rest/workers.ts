/** /v1/workers: the machines that joined, and taking them out of service. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import { workerView } from '../../protocol/fleet.ts';
import { pageQuery } from '../../protocol/jobs.ts';
import type { App } from '../app.ts';
import { found, workerParams, list, one, page } from './envelope.ts';

const tags = ['workers'];

export function workerRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/workers',
    config: { access: 'fleet:read' },
    schema: {
      tags,
      operationId: 'listWorkers',
      summary: 'List workers',
      querystring: pageQuery,
      response: { 200: list(workerView) },
    },
    handler: async ({ principal, query }) => page(await coordinator.listWorkers(principal, query)),
  });

  for (const [verb, draining, summary] of [
    ['drain', true, 'Give a worker no new work; what runs goes on'],
    ['undrain', false, 'Give a worker new work again'],
  ] as const) {
    app.route({
      method: 'POST',
      url: `/v1/workers/:id/${verb}`,
      config: { access: 'fleet:manage' },
      schema: {
        tags,
        operationId: `${verb}Worker`,
        summary,
        params: workerParams,
        response: { 200: one(workerView) },
      },
      handler: async ({ principal, params }) =>
        found(await coordinator.setDraining(principal, params.id, draining)),
    });
  }

  app.route({
    method: 'POST',
    url: '/v1/workers/:id/revoke',
    config: { access: 'fleet:manage' },
    schema: {
      tags,
      operationId: 'revokeWorker',
      summary: 'Refuse a worker from now on; what it runs is lost when its lease has run out',
      params: workerParams,
      response: { 200: one(workerView) },
    },
    handler: async ({ principal, params }) =>
      found(await coordinator.revokeWorker(principal, params.id)),
  });
}
