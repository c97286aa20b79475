/** Plans, budgets and usage over HTTP. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../testGateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());

test('a plan is asked for as a job is submitted, and submits nothing', async () => {
  const { status, json } = await gateway.call('POST', '/v1/plan', { body: { command: ['x'] } });
  expect([status, json.data]).toEqual([200, { options: [], never: null }]);
  expect(gateway.fake.jobs.size).toBe(0);
  const wrong = await gateway.call('POST', '/v1/plan', { body: { command: [] } });
  expect([wrong.status, wrong.json.code]).toEqual([400, 'INVALID_ARGUMENT']);
});

test('budgets of a tenant and of a user are made, listed and deleted', async () => {
  const body = { weight: 2, deviceMillis: 8000, mode: 'soft' };
  const made = await gateway.call('PUT', '/v1/budgets/lab', { body });
  expect(made.status).toBe(200);
  expect(made.json.data).toMatchObject({ tenant: 'lab', user: '', ...body, microsPerDay: null });
  const user = '/v1/budgets/lab/users/%C3%A4da%2Fx';
  expect((await gateway.call('PUT', user, { body: {} })).json.data).toMatchObject({
    tenant: 'lab',
    user: 'äda/x',
    weight: 1,
    mode: 'hard',
    atLimit: 'finish',
    version: 1,
  });
  const listed = await gateway.call('GET', '/v1/budgets');
  expect(listed.json.items).toHaveLength(2);
  const reader = gateway.fake.tokenWith('jobs:read');
  const own = await gateway.call('GET', '/v1/budgets', { token: reader });
  expect(own.json.items).toEqual([]);
  expect((await gateway.call('DELETE', user)).status).toBe(200);
  expect((await gateway.call('DELETE', user)).status).toBe(404);
  expect((await gateway.call('DELETE', '/v1/budgets/lab')).status).toBe(200);
});

test('a budget at another version is refused', async () => {
  await gateway.call('PUT', '/v1/budgets/v', { body: { version: 0 } });
  const again = await gateway.call('PUT', '/v1/budgets/v', { body: { version: 0 } });
  expect([again.status, again.json.code]).toEqual([409, 'STALE']);
});

test.each([
  [{ weight: 0 }, 'weight'],
  [{ deviceMillis: -1 }, 'deviceMillis'],
  [{ microsPerDay: 1.5 }, 'microsPerDay'],
  [{ mode: 'firm' }, 'mode'],
  [{ wieght: 1 }, 'weight'],
])('a wrong budget %j names the field', async (body, field) => {
  const { status, json } = await gateway.call('PUT', '/v1/budgets/lab', { body });
  expect(status).toBe(400);
  expect(JSON.stringify(json)).toContain(field);
});

test('usage is asked for by what and from when', async () => {
  const { status, json } = await gateway.call('GET', '/v1/usage?by=day&sinceMs=1&untilMs=2');
  expect([status, json.items]).toEqual([200, []]);
  expect((await gateway.call('GET', '/v1/usage?by=week')).status).toBe(400);
  expect((await gateway.call('GET', '/v1/usage?sinceMs=soon')).status).toBe(400);
});

test('the longest name fits into a path, also in letters of nine characters there', async () => {
  await using gateway = await startTestGateway();
  const path = (user: string): string => `/v1/budgets/main/users/${encodeURIComponent(user)}`;
  for (const name of ['x'.repeat(200), '漢'.repeat(200)]) {
    const { status, json } = await gateway.call('PUT', path(name), { body: {} });
    expect([status, json.data['user']]).toEqual([200, name]);
  }
  expect((await gateway.call('PUT', path('漢'.repeat(201)), { body: {} })).status).toBe(404);
});
