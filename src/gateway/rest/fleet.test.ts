/** Workers, tokens, cluster and queue over HTTP. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../testGateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());

test('the cluster and the queue can be looked at', async () => {
  const cluster = await gateway.call('GET', '/v1/cluster');
  expect([cluster.status, cluster.json.data.id]).toEqual([200, 'c1']);
  const queue = await gateway.call('GET', '/v1/queue?limit=5');
  expect([queue.status, queue.text]).toEqual([200, '{"data":[],"meta":{"nextCursor":null}}']);
});

test('a worker is drained and undrained', async () => {
  const drained = await gateway.call('POST', '/v1/workers/w1/drain');
  expect([drained.status, drained.json.data['draining']]).toEqual([200, true]);
  const listed = await gateway.call('GET', '/v1/workers');
  expect(listed.json.items[0]).toMatchObject({ id: 'w1', draining: true });
  const undrained = await gateway.call('POST', '/v1/workers/w1/undrain');
  expect([undrained.status, undrained.json.data['draining']]).toEqual([200, false]);
  const none = await gateway.call('POST', '/v1/workers/w9/drain');
  expect([none.status, none.json.code]).toEqual([404, 'NOT_FOUND']);
});

test('a token shows its secret once, works, and stops working when revoked', async () => {
  const made = await gateway.call('POST', '/v1/tokens', { body: { scopes: ['jobs:read'] } });
  expect(made.status).toBe(201);
  expect(made.headers.get('cache-control')).toBe('no-store');
  const token = made.json.data['secret'] as string;
  expect((await gateway.call('GET', '/v1/jobs', { token })).status).toBe(200);
  const listed = await gateway.call('GET', '/v1/tokens');
  expect(listed.text).not.toContain(token);

  const revoked = await gateway.call('DELETE', `/v1/tokens/${made.json.data.id}`);
  expect(revoked.status).toBe(200);
  expect((await gateway.call('GET', '/v1/jobs', { token })).status).toBe(401);
});

test('a scope that does not exist is refused with those that do', async () => {
  const { status, json } = await gateway.call('POST', '/v1/tokens', { body: { scopes: ['all'] } });
  expect(status).toBe(400);
  expect(json.detail).toContain('jobs:manage');
});

test('many requests with one token ask the controller once', async () => {
  const token = gateway.fake.tokenWith('jobs:read');
  const before = gateway.fake.calls.get('authenticate') ?? 0;
  await Promise.all(Array.from({ length: 20 }, () => gateway.call('GET', '/v1/queue', { token })));
  expect(gateway.fake.calls.get('authenticate')).toBe(before + 1);
});
