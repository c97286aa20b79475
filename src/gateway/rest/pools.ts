/** /v1/pools, /v1/instances and /v1/hosts: where machines come from, and what became of them. */
import { z } from 'zod';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { hostView, hostWord, instanceQuery, instanceView, poolView } from '../../protocol/pools.ts';
import type { App } from '../app.ts';
import { found, idOf, list, one, page, whole } from './envelope.ts';

const tags = ['pools'];
const poolParams = z.strictObject({
  pool: z
    .string()
    .min(1)
    .max(100)
    .describe('The name of a pool')
    .meta({ examples: ['gpu'] }),
});
const instanceParams = idOf('an instance', 'imi1qx2k8a7c101');

export function poolRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/pools',
    config: { access: 'fleet:read' },
    schema: {
      tags,
      operationId: 'listPools',
      summary: 'Pools: what they bring, cost, and what stands in their way',
      response: { 200: list(poolView) },
    },
    handler: async ({ principal }) => whole(await coordinator.listPools(principal)),
  });

  app.route({
    method: 'POST',
    url: '/v1/pools/:pool/look',
    config: { access: 'fleet:manage' },
    schema: {
      tags,
      operationId: 'lookAtPool',
      summary: "Ask a pool's provider now",
      params: poolParams,
      response: { 200: one(poolView) },
    },
    handler: async ({ principal, params }) =>
      found(await coordinator.lookAtPool(principal, params.pool)),
  });
  instanceRoutes(app, coordinator);
  hostRoutes(app, coordinator);
}

function instanceRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/instances',
    config: { access: 'fleet:read' },
    schema: {
      tags,
      operationId: 'listInstances',
      summary: 'Machines that providers were asked for',
      querystring: instanceQuery,
      response: { 200: list(instanceView) },
    },
    handler: async ({ principal, query }) =>
      page(await coordinator.listInstances(principal, query)),
  });

  app.route({
    method: 'GET',
    url: '/v1/instances/:id',
    config: { access: 'fleet:read' },
    schema: {
      tags,
      operationId: 'getInstance',
      summary: 'One of them, with what it was launched with',
      params: instanceParams,
      response: { 200: one(instanceView) },
    },
    handler: async ({ principal, params }) =>
      found(await coordinator.getInstance(principal, params.id)),
  });

  app.route({
    method: 'DELETE',
    url: '/v1/instances/:id',
    config: { access: 'fleet:manage' },
    schema: {
      tags,
      operationId: 'destroyInstance',
      summary: 'Give one back, whatever runs on it',
      params: instanceParams,
      response: { 200: one(instanceView) },
    },
    handler: async ({ principal, params }) =>
      found(await coordinator.destroyInstance(principal, params.id)),
  });
}

function hostRoutes(app: App, coordinator: Coordinator): void {
  app.route({
    method: 'GET',
    url: '/v1/hosts',
    config: { access: 'fleet:read' },
    schema: {
      tags,
      operationId: 'listHosts',
      summary: 'Hosts of which something is known, with their reputation',
      response: { 200: list(hostView) },
    },
    handler: async ({ principal }) => whole(await coordinator.listHosts(principal)),
  });

  app.route({
    method: 'POST',
    url: '/v1/hosts/verdict',
    config: { access: 'fleet:manage', failures: ['NOT_FOUND'] },
    schema: {
      tags,
      operationId: 'setHost',
      summary: 'Block a host, allow it whatever happened, or forget what did',
      body: hostWord.meta({ examples: [{ host: 'gpu/node-7', word: 'blocked' }] }),
      response: { 200: one(hostView) },
    },
    handler: async ({ principal, body }) => found(await coordinator.setHost(principal, body)),
  });
}
