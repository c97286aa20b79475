/** /v1/tenants and /v1/users: who there is, who may come in, and who leaves. */
import { z } from 'zod';
import type { Coordinator } from '../../protocol/coordinator.ts';
import {
  LEAVING_JOBS,
  tenantInput,
  tenantName,
  tenantView,
  userInput,
  userName,
  userView,
} from '../../protocol/tenants.ts';
import type { App } from '../app.ts';
import type { TokenCache } from '../auth/tokenCache.ts';
import { found, list, one, whole } from './envelope.ts';

const tags = ['tenants'];
const tenantParams = z.strictObject({
  tenant: tenantName.describe('The name of a tenant').meta({ examples: ['vision-lab'] }),
});
const userParams = z.strictObject({
  user: userName.describe('The name of a user').meta({ examples: ['ada'] }),
});
const leavingQuery = z.strictObject({
  jobs: z
    .enum(LEAVING_JOBS)
    .optional()
    .describe("What becomes of jobs that have not ended; left out: as the site's policy says"),
});

export function tenantRoutes(app: App, coordinator: Coordinator, cache: TokenCache): void {
  app.route({
    method: 'GET',
    url: '/v1/tenants',
    config: { access: 'jobs:read' },
    schema: {
      tags,
      operationId: 'listTenants',
      summary: "The caller's tenant; with tenants:manage all",
      response: { 200: list(tenantView) },
    },
    handler: async ({ principal }) => whole(await coordinator.listTenants(principal)),
  });

  app.route({
    method: 'PUT',
    url: '/v1/tenants/:tenant',
    config: { access: 'tenants:manage' },
    schema: {
      tags,
      operationId: 'setTenant',
      summary: 'Make a tenant, or suspend it',
      params: tenantParams,
      body: tenantInput.meta({ examples: [{ suspended: false, note: 'second floor' }] }),
      response: { 200: one(tenantView) },
    },
    handler: async ({ principal, params, body }) => {
      const view = await coordinator.setTenant(principal, params.tenant, body);
      cache.clear();
      return found(view);
    },
  });
  userRoutes(app, coordinator, cache);
}

function userRoutes(app: App, coordinator: Coordinator, cache: TokenCache): void {
  const config = { access: 'tokens:manage' } as const;
  app.route({
    method: 'GET',
    url: '/v1/users',
    config,
    schema: {
      tags,
      operationId: 'listUsers',
      summary: 'Users of the tenant who have a token, a live job or a role',
      response: { 200: list(userView) },
    },
    handler: async ({ principal }) => whole(await coordinator.listUsers(principal)),
  });

  app.route({
    method: 'PUT',
    url: '/v1/users/:user',
    config,
    schema: {
      tags,
      operationId: 'setUser',
      summary: 'Give a user roles; one who had left is back',
      params: userParams,
      body: userInput.meta({ examples: [{ roles: ['user'] }] }),
      response: { 200: one(userView) },
    },
    handler: async ({ principal, params, body }) => {
      const view = await coordinator.setUser(principal, params.user, body);
      cache.clear();
      return found(view);
    },
  });

  app.route({
    method: 'DELETE',
    url: '/v1/users/:user',
    config,
    schema: {
      tags,
      operationId: 'removeUser',
      summary: 'A user leaves: tokens end, and jobs where that is asked for',
      params: userParams,
      querystring: leavingQuery,
      response: { 200: one(userView) },
    },
    handler: async ({ principal, params, query }) => {
      const view = await coordinator.removeUser(principal, params.user, query.jobs);
      cache.clear();
      return found(view);
    },
  });
}
