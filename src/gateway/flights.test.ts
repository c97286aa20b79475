/** Deadlines of calls under way, and the log of slow ones. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { silentLog } from '../lib/log.ts';
import { startTestGateway } from './testGateway.ts';

test('a unary call that takes too long is a 504; a long poll may take its time', async () => {
  await using slow = await startTestGateway(
    { cluster: () => delay(600).then(() => Promise.reject(new Error('too late'))) },
    { limits: { unaryTimeoutMs: 100, longPollTimeoutMs: 5000 } },
  );
  const startedAt = performance.now();
  const { status, json } = await slow.call('GET', '/v1/cluster');
  expect([status, json.code]).toEqual([504, 'TIMEOUT']);
  expect(performance.now() - startedAt).toBeLessThan(400);
  const { json: made } = await slow.call('POST', '/v1/jobs', { body: { command: ['a'] } });
  const waited = await slow.call('GET', `/v1/jobs/${made.data.id}/wait?waitMs=400`);
  expect(waited.status).toBe(200);
});

test('a long poll ends too when its controller never answers', async () => {
  await using stuck = await startTestGateway(
    { waitJob: () => new Promise(() => {}) },
    { limits: { longPollTimeoutMs: 50 } },
  );
  expect((await stuck.call('GET', '/v1/jobs/j1/wait')).status).toBe(504);
});

test('a slow call is logged', async () => {
  const logged: object[] = [];
  const log = { ...silentLog, warn: (fields: object) => void logged.push(fields) };
  await using slow = await startTestGateway(
    { queue: () => delay(60).then(() => ({ items: [], nextCursor: null })) },
    { log, limits: { slowMs: 30 } },
  );
  await slow.call('GET', '/v1/queue?limit=3');
  await expect.poll(() => logged).toHaveLength(1);
  expect(logged[0]).toMatchObject({ method: 'GET', route: '/v1/queue', status: 200 });
});
