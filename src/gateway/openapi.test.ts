/** The description, and a walk over every route in it without and with each scope. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Scope, SCOPES } from '../model/token.ts';
import { startTestGateway, type TestGateway } from './testGateway.ts';

interface Operation {
  security?: { bearer?: Scope[] }[];
  responses: Record<string, { content?: Record<string, unknown> }>;
  parameters?: { name: string; in: string }[];
}
interface Description {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
}

let gateway: TestGateway;
let operations: { method: string; path: string; operation: Operation }[];
let description: Description;

beforeAll(async () => {
  gateway = await startTestGateway();
  const { text } = await gateway.call('GET', '/openapi.json', { token: null });
  description = JSON.parse(text) as Description;
  operations = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{\w+\}/g, 'x1'),
      operation,
    })),
  );
});
afterAll(() => gateway.close());

const scopeOf = (operation: Operation): Scope | undefined => operation.security?.[0]?.bearer?.[0];

test('it is OpenAPI 3.1 and names every route', () => {
  expect(description.openapi).toBe('3.1.0');
  expect(Object.keys(description.paths).toSorted()).toEqual([
    '/healthz',
    '/metrics',
    '/openapi.json',
    '/readyz',
    '/reference',
    '/v1/audit',
    '/v1/budgets',
    '/v1/budgets/{tenant}',
    '/v1/budgets/{tenant}/users/{user}',
    '/v1/cluster',
    '/v1/hosts',
    '/v1/hosts/verdict',
    '/v1/instances',
    '/v1/instances/{id}',
    '/v1/jobs',
    '/v1/jobs/batch',
    '/v1/jobs/{id}',
    '/v1/jobs/{id}/attempts',
    '/v1/jobs/{id}/cancel',
    '/v1/jobs/{id}/capsule',
    '/v1/jobs/{id}/checkpoints',
    '/v1/jobs/{id}/events',
    '/v1/jobs/{id}/priority',
    '/v1/jobs/{id}/receipt',
    '/v1/jobs/{id}/tasks',
    '/v1/jobs/{id}/wait',
    '/v1/jobs/{id}/why',
    '/v1/plan',
    '/v1/policy',
    '/v1/pools',
    '/v1/pools/{pool}/look',
    '/v1/queue',
    '/v1/tenants',
    '/v1/tenants/{tenant}',
    '/v1/tokens',
    '/v1/tokens/{id}',
    '/v1/usage',
    '/v1/users',
    '/v1/users/{user}',
    '/v1/workers',
    '/v1/workers/{id}/drain',
    '/v1/workers/{id}/revoke',
    '/v1/workers/{id}/undrain',
  ]);
  expect(Object.keys(description.components.schemas)).toEqual(
    expect.arrayContaining(['Job', 'JobSpecInput', 'Task', 'Worker', 'Token', 'Problem']),
  );
  // Sent and never answered: one of it is enough.
  expect(Object.keys(description.components.schemas)).not.toEqual(
    expect.arrayContaining(['BudgetLimitsInput']),
  );
});

test('every operation describes its success and its failure', () => {
  for (const { method, path, operation } of operations) {
    const codes = Object.keys(operation.responses);
    expect(
      codes.some((code) => code.startsWith('2')),
      `${method} ${path}`,
    ).toBe(true);
    for (const status of ['500', '503', '504']) {
      const answer = { $ref: `#/components/responses/Problem${status}` };
      const own = { content: { 'application/problem+json': expect.anything() } };
      const said = operation.responses[status];
      expect(said, `${method} ${path} ${status}`).toEqual(
        said?.content ? expect.objectContaining(own) : answer,
      );
    }
  }
});

test('submit names its Idempotency-Key', () => {
  const names = description.paths['/v1/jobs']?.['post']?.parameters?.map(({ name }) => name);
  expect(names).toEqual(['idempotency-key']);
});

test('everything under /v1 needs a scope, and only health is open', () => {
  for (const { path, operation } of operations) {
    const needed = scopeOf(operation);
    if (path.startsWith('/v1/')) expect(SCOPES, path).toContain(needed);
    else expect(needed, path).toBeUndefined();
  }
});

test('without a token, or with a wrong one, every guarded route says 401', async () => {
  const guarded = operations.filter(({ operation }) => scopeOf(operation));
  expect(guarded.length).toBeGreaterThan(15);
  for (const { method, path } of guarded) {
    for (const token of [null, 'wrong']) {
      const { status, json, headers } = await gateway.call(method, path, { token });
      expect([status, json.code], `${method} ${path}`).toEqual([401, 'UNAUTHENTICATED']);
      expect(headers.get('www-authenticate')).toContain('Bearer');
    }
  }
});

test('with every scope but the right one, every guarded route says 403', async () => {
  for (const { method, path, operation } of operations) {
    const needed = scopeOf(operation);
    if (!needed) continue;
    const token = gateway.fake.tokenWith(...SCOPES.filter((scope) => scope !== needed));
    const { status, json } = await gateway.call(method, path, { token });
    expect([status, json.code], `${method} ${path}`).toEqual([403, 'PERMISSION_DENIED']);
    expect(json.detail).toContain(needed);
  }
});

test('with just the right scope, no guarded route refuses', async () => {
  for (const { method, path, operation } of operations) {
    const needed = scopeOf(operation);
    if (!needed || path.endsWith('/wait')) continue;
    const token = gateway.fake.tokenWith(needed);
    const { status } = await gateway.call(method, path, { token });
    expect([200, 202, 400, 404], `${method} ${path}`).toContain(status);
  }
});
