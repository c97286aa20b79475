/**
 * The instrument itself: what it sends, that it never flatters a server, that it notices a
 * refusal.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { COUNTER, closedLoop, paced } from '../../bench/jobs/support/loader.ts';
import { percentile } from '../../bench/jobs/support/measure.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<number> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => answer(request, response));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

const ok = (response: ServerResponse): void => {
  response.setHeader('content-length', 2);
  response.end('ok');
};
const load = (port: number) => ({
  port,
  request: { method: 'POST', path: '/', headers: { 'x-key': `a-${COUNTER}` }, body: '{}' },
  connections: 8,
  seconds: 0.5,
  warmupSeconds: 0.1,
});

test('every request has its own key and all that were accepted are counted', async () => {
  const keys: unknown[] = [];
  const port = await serve((request, response) => {
    keys.push(request.headers['x-key']);
    ok(response);
  });
  const { accepted } = await closedLoop(load(port));
  expect(accepted).toBe(keys.length);
  expect(new Set(keys).size).toBe(keys.length);
});

test('a paced request is never early, no latency below what the server took', async () => {
  const port = await serve((_, response) => void setTimeout(() => ok(response), 5));
  const result = await paced({ ...load(port), perSecond: 200 });
  expect(Math.min(...result.latenessMs)).toBeGreaterThanOrEqual(0);
  // The server's own timer may end a little early too, but never by this much.
  expect(percentile(result.latenciesMs, 0.01)).toBeGreaterThan(3.5);
});

test('a stall counts for every request that fell due in it', async () => {
  const began = performance.now();
  const port = await serve((_, response) => {
    const stalled = performance.now() - began > 250;
    if (stalled && performance.now() - began < 450) {
      setTimeout(() => ok(response), began + 450 - performance.now());
    } else ok(response);
  });
  const result = await paced({ ...load(port), perSecond: 400 });
  // 8 connections, 200 ms of silence at 400/s: 80 requests are due in it.
  expect(result.latenciesMs.filter((ms) => ms > 20).length).toBeGreaterThan(40);
});

test('a refusal ends the measurement with what the server said', async () => {
  const port = await serve((_, response) => {
    response.statusCode = 503;
    response.setHeader('content-length', 4);
    response.end('busy');
  });
  await expect(closedLoop(load(port))).rejects.toThrow('status 503: busy');
});
