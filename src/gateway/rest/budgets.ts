/** /v1/plan, /v1/budgets and /v1/usage: what a job would cost, may cost, and has cost. */
import { z } from 'zod';
import {
  budgetLimits,
  budgetTenant,
  budgetUser,
  budgetView,
  planView,
  usageQuery,
  usageRow,
} from '../../protocol/budgets.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { jobSpec } from '../../protocol/jobSpec.ts';
import type { App } from '../app.ts';
import { found, list, one, whole } from './envelope.ts';

const tags = ['budgets'];
const tenantParams = z.strictObject({
  tenant: budgetTenant.describe('The name of a tenant').meta({ examples: ['vision-lab'] }),
});
const userParams = tenantParams.extend({
  user: budgetUser
    .min(1)
    .describe('The name of a user')
    .meta({ examples: ['ada'] }),
});
const deleted = one(z.object({ tenant: z.string(), user: z.string() }));

export function budgetRoutes(app: App, coordinator: Coordinator): void {
  readRoutes(app, coordinator);
  tenantRoutes(app, coordinator);
  userRoutes(app, coordinator);
}

function readRoutes(app: App, coordinator: Coordinator): void {
  const config = { access: 'jobs:read' } as const;
  app.route({
    method: 'POST',
    url: '/v1/plan',
    config,
    schema: {
      tags: ['jobs'],
      operationId: 'plan',
      summary: 'Where a job would go, when, and what it would cost; nothing is written',
      body: jobSpec,
      response: { 200: one(planView) },
    },
    handler: async ({ principal, body }) => found(await coordinator.plan(principal, body)),
  });

  app.route({
    method: 'GET',
    url: '/v1/budgets',
    config,
    schema: {
      tags,
      operationId: 'listBudgets',
      summary: "The tenant's budgets; with tenants:manage everybody's",
      response: { 200: list(budgetView) },
    },
    handler: async ({ principal }) => whole(await coordinator.listBudgets(principal)),
  });

  app.route({
    method: 'GET',
    url: '/v1/usage',
    config,
    schema: {
      tags,
      operationId: 'usage',
      summary: 'What the tenant used; with tenants:manage what everybody used',
      querystring: usageQuery,
      response: { 200: list(usageRow) },
    },
    handler: async ({ principal, query }) => whole(await coordinator.usage(principal, query)),
  });
}

function tenantRoutes(app: App, coordinator: Coordinator): void {
  const config = { access: 'budgets:manage' } as const;
  app.route({
    method: 'PUT',
    url: '/v1/budgets/:tenant',
    config: { ...config, failures: ['STALE'] },
    schema: {
      tags,
      operationId: 'setTenantBudget',
      summary: 'Make or replace the budget of a tenant',
      params: tenantParams,
      body: budgetLimits,
      response: { 200: one(budgetView) },
    },
    handler: async ({ principal, params, body }) =>
      found(await coordinator.setBudget(principal, { ...body, ...params, user: '' })),
  });

  app.route({
    method: 'DELETE',
    url: '/v1/budgets/:tenant',
    config,
    schema: {
      tags,
      operationId: 'deleteTenantBudget',
      summary: 'Delete the budget of a tenant; what was used stays known',
      params: tenantParams,
      response: { 200: deleted },
    },
    handler: async ({ principal, params }) => {
      await coordinator.deleteBudget(principal, params.tenant, '');
      return found({ tenant: params.tenant, user: '' });
    },
  });
}

function userRoutes(app: App, coordinator: Coordinator): void {
  const config = { access: 'budgets:manage' } as const;
  app.route({
    method: 'PUT',
    url: '/v1/budgets/:tenant/users/:user',
    config: { ...config, failures: ['STALE'] },
    schema: {
      tags,
      operationId: 'setUserBudget',
      summary: 'Make or replace the budget of a user',
      params: userParams,
      body: budgetLimits,
      response: { 200: one(budgetView) },
    },
    handler: async ({ principal, params, body }) =>
      found(await coordinator.setBudget(principal, { ...body, ...params })),
  });

  app.route({
    method: 'DELETE',
    url: '/v1/budgets/:tenant/users/:user',
    config,
    schema: {
      tags,
      operationId: 'deleteUserBudget',
      summary: 'Delete the budget of a user; what was used stays known',
      params: userParams,
      response: { 200: deleted },
    },
    handler: async ({ principal, params }) => {
      await coordinator.deleteBudget(principal, params.tenant, params.user);
      return found(params);
    },
  });
}
