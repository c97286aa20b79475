/** Health, readiness and metrics over HTTP. */
import { spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { expect, test } from 'vitest';
import { startTestGateway } from '../testGateway.ts';

test('health needs no token and no controller', async () => {
  await using gateway = await startTestGateway({
    readiness: () => Promise.reject(new Error('gone')),
  });
  const { status, json } = await gateway.call('GET', '/healthz', { token: null });
  expect([status, json.data]).toEqual([200, { alive: true }]);
  const ready = await gateway.call('GET', '/readyz', { token: null });
  expect(ready.status).toBe(500);
  expect(ready.text).not.toContain('gone');
});

test('ready says yes, or why not and which loop', async () => {
  const loop = {
    name: 'schedule',
    periodMs: 1000,
    lastStartedAtMs: 1,
    lastFinishedAtMs: null,
    failures: 3,
    lastError: 'stuck',
    healthy: false,
  };
  let ready = true;
  await using gateway = await startTestGateway({
    readiness: async () => ({ ready, reasons: ready ? [] : ['schedule is late'], loops: [loop] }),
  });
  const yes = await gateway.call('GET', '/readyz', { token: null });
  expect([yes.status, yes.json.data['ready']]).toEqual([200, true]);
  ready = false;
  const no = await gateway.call('GET', '/readyz', { token: null });
  expect(no.status).toBe(503);
  expect(no.headers.get('content-type')).toContain('application/problem+json');
  expect(no.json).toMatchObject({
    code: 'UNAVAILABLE',
    detail: 'schedule is late',
    reasons: ['schedule is late'],
    loops: [loop],
  });
});

test('metrics hold the controller’s and the gateway’s, by route pattern and status', async () => {
  await using gateway = await startTestGateway();
  await gateway.call('GET', '/v1/jobs/j404');
  await gateway.call('GET', '/v1/jobs/j405');
  await gateway.call('GET', '/nowhere');
  const { status, text, headers } = await gateway.call('GET', '/metrics', { token: null });
  expect(status).toBe(200);
  expect(headers.get('content-type')).toContain('text/plain');
  expect(text).toContain('\ndrover_up 1\n');
  expect(text).toContain(
    'drover_gateway_requests_total{method="GET",route="/v1/jobs/:id",status="404"} 2\n',
  );
  expect(text).toContain(
    'drover_gateway_requests_total{method="any",route="unknown",status="404"} 1',
  );
  expect(text).toContain(
    'drover_gateway_request_duration_seconds_count{method="GET",route="/v1/jobs/:id"} 2\n',
  );
  expect(text).toContain('drover_gateway_requests_in_flight 1\n');
  expect(text).toContain('drover_gateway_token_cache_hits_total 1\n');
  expect(text).toContain('drover_gateway_token_cache_misses_total 1\n');
});

test('promtool finds nothing wrong with the metrics', async () => {
  await using gateway = await startTestGateway();
  await gateway.call('POST', '/v1/jobs', { body: { command: ['true'] } });
  const { text } = await gateway.call('GET', '/metrics');
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (checked.error) {
    const message = 'promtool is not installed (Debian package prometheus): metrics not checked';
    if (process.env['CI']) throw new Error(message);
    process.stderr.write(`${message}\n`);
    return;
  }
  expect(checked.stderr + checked.stdout).toBe('');
  expect(checked.status).toBe(0);
});

test('metrics asked for through a proxy need a token', async () => {
  await using gateway = await startTestGateway();
  const headers = { 'x-forwarded-for': '203.0.113.7' };
  expect((await gateway.call('GET', '/metrics', { token: null, headers })).status).toBe(401);
  const token = gateway.fake.tokenWith('fleet:read');
  expect((await gateway.call('GET', '/metrics', { token, headers })).status).toBe(200);
});

test('a client that leaves is no longer in flight and counts as 499', async () => {
  await using gateway = await startTestGateway();
  const { json } = await gateway.call('POST', '/v1/jobs', { body: { command: ['true'] } });
  const waiting = request(`${gateway.url}/v1/jobs/${json.data.id}/wait?waitMs=300`, {
    headers: { authorization: `Bearer ${gateway.fake.adminToken}` },
  });
  waiting.on('error', () => {});
  waiting.end();
  await expect.poll(() => gateway.fake.calls.get('waitJob')).toBe(1);
  waiting.destroy();
  await expect
    .poll(async () => (await gateway.call('GET', '/metrics')).text)
    .toContain('route="/v1/jobs/:id/wait",status="499"} 1\n');
});
