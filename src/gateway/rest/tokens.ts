/** /v1/tokens: make, list and revoke the tokens of users and of joining machines. */
import type { Coordinator } from '../../protocol/coordinator.ts';
import { createToken, tokenView } from '../../protocol/fleet.ts';
import { pageQuery } from '../../protocol/jobs.ts';
import type { App } from '../app.ts';
import type { TokenCache } from '../auth/tokenCache.ts';
import { found, tokenParams, list, one, page } from './envelope.ts';

const tags = ['tokens'];
const EXAMPLE = { name: 'laptop', scopes: ['jobs:read', 'jobs:manage'] };
const config = { access: 'tokens:manage' } as const;

export function tokenRoutes(app: App, coordinator: Coordinator, cache: TokenCache): void {
  app.route({
    method: 'GET',
    url: '/v1/tokens',
    config,
    schema: {
      tags,
      operationId: 'listTokens',
      summary: 'List tokens, without their secrets',
      querystring: pageQuery,
      response: { 200: list(tokenView) },
    },
    handler: async ({ principal, query }) => page(await coordinator.listTokens(principal, query)),
  });

  app.route({
    method: 'POST',
    url: '/v1/tokens',
    config: { ...config, failures: ['CONFLICT'] },
    schema: {
      tags,
      operationId: 'createToken',
      summary: 'Make a token; its secret is shown this once',
      body: createToken.meta({ examples: [EXAMPLE] }),
      response: { 201: one(tokenView) },
    },
    handler: async ({ principal, body }, reply) => {
      const token = await coordinator.createToken(principal, body);
      return reply.code(201).header('cache-control', 'no-store').send(found(token));
    },
  });

  app.route({
    method: 'DELETE',
    url: '/v1/tokens/:id',
    config,
    schema: {
      tags,
      operationId: 'revokeToken',
      summary: 'Revoke a token',
      params: tokenParams,
      response: { 200: one(tokenView) },
    },
    handler: async ({ principal, params }) => {
      const token = await coordinator.revokeToken(principal, params.id);
      cache.forget(token.id);
      return found(token);
    },
  });
}
