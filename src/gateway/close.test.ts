/** Closing: what is finished, refused, let go and cut off. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startTestGateway } from './testGateway.ts';

const CLUSTER = { id: 'c1' } as never;

test('a call under way is finished, a new connection refused', async () => {
  const gateway = await startTestGateway({ cluster: () => delay(150, CLUSTER) });
  const underWay = gateway.call('GET', '/v1/cluster');
  await expect.poll(() => gateway.fake.calls.get('cluster')).toBe(1);
  const startedAt = performance.now();
  const closing = gateway.close();
  await expect(gateway.call('GET', '/healthz')).rejects.toThrow('fetch failed');
  expect((await underWay).status).toBe(200);
  await closing;
  expect(performance.now() - startedAt).toBeLessThan(1000);
});

test('a request on a connection kept alive is refused with 503 while it closes', async () => {
  const gateway = await startTestGateway({ cluster: () => delay(150, CLUSTER) });
  const { hostname, port } = new URL(gateway.url);
  const socket = connect({ host: hostname, port: Number(port) });
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk)));
  const call = (path: string): boolean =>
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.fake.adminToken}\r\n\r\n`,
    );
  call('/v1/cluster');
  await expect.poll(() => gateway.fake.calls.get('cluster')).toBe(1);
  const closing = gateway.close();
  call('/v1/queue');
  await Promise.all([closing, once(socket, 'close')]);
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
  expect(statuses).toEqual(['200', '503']);
  expect(text).toContain('"code":"UNAVAILABLE"');
});

test('calls that only wait are answered at once', async () => {
  const gateway = await startTestGateway();
  const { json } = await gateway.call('POST', '/v1/jobs', { body: { command: ['a'] } });
  const waiting = gateway.call('GET', `/v1/jobs/${json.data.id}/wait?waitMs=2000`);
  await expect.poll(() => gateway.fake.calls.get('waitJob')).toBe(1);
  const startedAt = performance.now();
  await gateway.close();
  expect((await waiting).json.code).toBe('UNAVAILABLE');
  expect(performance.now() - startedAt).toBeLessThan(1000);
});

test('what does not end is cut off in time', async () => {
  const gateway = await startTestGateway(
    { cluster: () => new Promise(() => {}) },
    { limits: { closeMs: 100 } },
  );
  const stuck = gateway.call('GET', '/v1/cluster');
  const failed = expect(stuck).rejects.toThrow('fetch failed');
  await expect.poll(() => gateway.fake.calls.get('cluster')).toBe(1);
  const startedAt = performance.now();
  await gateway.close();
  await failed;
  expect(performance.now() - startedAt).toBeLessThan(1000);
});

test('connections that idle do not hold it up, and closing twice is no error', async () => {
  const gateway = await startTestGateway();
  const agent = new Agent({ keepAlive: true });
  await new Promise<void>((resolve, reject) => {
    request(`${gateway.url}/healthz`, { agent }, (response) => {
      response.resume().on('end', resolve);
    })
      .on('error', reject)
      .end();
  });
  await Promise.all([gateway.close(), gateway.close()]);
  agent.destroy();
});

test('an upgrade is handed over, can be authorised, and ends with the gateway', async () => {
  const seen: unknown[] = [];
  const gateway = await startTestGateway(
    {},
    {
      upgrade: (incoming, socket, _head, authorize) => {
        authorize(incoming, 'jobs:manage').then(
          ({ user }) => socket.write(`HTTP/1.1 101 Hello ${user}\r\n\r\n`),
          ({ code }: { code: string }) => socket.end(`HTTP/1.1 401 ${code}\r\n\r\n`),
        );
      },
    },
  );
  const open = (token: string): Promise<unknown> =>
    new Promise((resolve) => {
      const { hostname, port } = new URL(gateway.url);
      const socket = connect({ host: hostname, port: Number(port) });
      socket.write(
        'GET /tunnel HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n' +
          `authorization: Bearer ${token}\r\n\r\n`,
      );
      socket.once('data', (chunk) => seen.push(String(chunk).split('\r\n')[0]));
      socket.on('error', () => {});
      socket.on('close', resolve);
    });
  await open('wrong');
  const kept = open(gateway.fake.adminToken);
  await expect.poll(() => seen).toHaveLength(2);
  expect(seen).toEqual(['HTTP/1.1 401 UNAUTHENTICATED', 'HTTP/1.1 101 Hello ada']);
  await gateway.close();
  await kept;
});
