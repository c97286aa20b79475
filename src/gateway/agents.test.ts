/** What agents send passes through, and nothing else does. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AGENT_PATHS } from '../protocol/agent.ts';
import { JOIN_TOKEN, WORKER_TOKEN } from './fakeCoordinator.ts';
import { startTestGateway, type TestGateway } from './testGateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());

const join = {
  name: 'machine',
  machine: 'm1',
  bootId: 'b1',
  address: '127.0.0.1',
  network: 'local',
  agentVersion: '0.1.0',
  capabilities: [],
  attributes: {},
  resources: { cpuMillis: 1000, memoryBytes: 1, devices: [], portRange: [20_000, 20_100] },
};
const sync = { worker: 'w1', bootId: 'b1', start: 1, seq: 1, epoch: 0, observed: [], wait: true };

test('join, sync and logs pass through as they are', async () => {
  const joined = await gateway.call('POST', AGENT_PATHS.join, { token: JOIN_TOKEN, body: join });
  expect(joined.status).toBe(200);
  expect(joined.json).toMatchObject({ worker: 'w1', token: WORKER_TOKEN, clusterId: 'c1' });

  const synced = await gateway.call('POST', AGENT_PATHS.sync, { token: WORKER_TOKEN, body: sync });
  expect(synced.status).toBe(200);
  expect(synced.json).toMatchObject({ epoch: 1, generation: 1, desired: [], stop: [] });

  const logged = await gateway.call('POST', AGENT_PATHS.logs, {
    token: WORKER_TOKEN,
    body: new Uint8Array([104, 105]),
    headers: { 'content-type': 'application/octet-stream' },
  });
  expect([logged.status, logged.json]).toEqual([200, [{ uid: 'a1', stream: 'stdout', offset: 2 }]]);
  expect(Buffer.from(gateway.fake.logs[0]?.bytes ?? []).toString()).toBe('hi');
});

test('no token, or one the controller does not know, is a 401', async () => {
  for (const path of [AGENT_PATHS.join, AGENT_PATHS.sync]) {
    const body = path === AGENT_PATHS.join ? join : sync;
    for (const token of [null, 'wrong', gateway.fake.adminToken]) {
      const { status, json } = await gateway.call('POST', path, { token, body });
      expect([status, json.code], path).toEqual([401, 'UNAUTHENTICATED']);
    }
  }
});

test('a sync that is not one is a 400 that names the field', async () => {
  const observed = [{ uid: 'a1', state: 'ENDED', exitcode: 0 }];
  const { status, json } = await gateway.call('POST', AGENT_PATHS.sync, {
    token: WORKER_TOKEN,
    body: { ...sync, observed },
  });
  expect(status).toBe(400);
  expect(json.detail).toContain('observed.0.exitcode');
  expect(json.hint).toContain('exitCode');
});

test('logs are bytes and nothing else is', async () => {
  const token = WORKER_TOKEN;
  const asJson = await gateway.call('POST', AGENT_PATHS.logs, { token, body: {} });
  expect([asJson.status, asJson.json.hint]).toEqual([
    415,
    'Send "Content-Type: application/octet-stream".',
  ]);
  const empty = await gateway.call('POST', AGENT_PATHS.logs, { token });
  expect([empty.status, empty.json.code]).toEqual([400, 'MALFORMED_BODY']);
});

test('agents’ routes are not for users: the description names them and says no more', async () => {
  const { json } = await gateway.call('GET', '/openapi.json');
  const { paths, 'x-other-routes': others } = json;
  expect(JSON.stringify(paths)).not.toContain('drover.v1');
  expect(others).toContainEqual({
    method: 'POST',
    path: AGENT_PATHS.sync,
    'x-permission': 'agent',
  });
  expect((await gateway.call('GET', AGENT_PATHS.sync)).headers.get('allow')).toBe('POST');
});
