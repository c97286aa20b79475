/** Connections cut midway in a message: nothing half done or twice, no log byte missing. */
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allJobs, shell, waiting } from '../../support/jobs.ts';
import { startProxy, type FaultProxy } from '../../support/proxy.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { post } from '../../support/submitters.ts';

const ENOUGH_CUTS = process.env['SOAK'] === '1' ? 500 : 20;

let server: TestServer;
let proxy: FaultProxy;
beforeAll(async () => {
  server = await startServer();
  proxy = await startProxy(server.url);
});
afterAll(async () => {
  proxy.cutAfter = () => Number.POSITIVE_INFINITY;
  await server.close();
  await proxy.close();
});

function submission(key: string): { head: string; body: string } {
  const body = JSON.stringify({ name: key, ...waiting() });
  const head =
    `POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.token}\r\n` +
    `content-type: application/json\r\nidempotency-key: ${key}\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return { head, body };
}

/** Sends these bytes, waits a moment and resets the connection. */
async function sendAndReset(bytes: string, waitMs: number): Promise<void> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  await delay(waitMs);
  socket.resetAndDestroy();
}

const named = async (prefix: string): Promise<string[]> =>
  (await allJobs(server)).map(({ name }) => name).filter((name) => name.startsWith(prefix));

test('half a submit leaves nothing; the whole under the same key is one job', async () => {
  const keys = Array.from({ length: 40 }, (_, n) => `half-${n}`);
  await Promise.all(
    keys.map(async (key) => {
      const { head, body } = submission(key);
      const all = head + body;
      // At least one byte is missing; some stop within the headers, most within the body.
      const end = Math.floor(all.length * (0.2 + Math.random() * 0.8)) - 1;
      await sendAndReset(all.slice(0, end), 20);
    }),
  );
  await delay(200);
  expect(await named('half-')).toEqual([]);
  for (const key of keys) {
    const reply = await post(server.url, server.token, key, submission(key).body);
    expect(reply?.status).toBe(201);
  }
  expect((await named('half-')).toSorted()).toEqual(keys.toSorted());
});

test('a submit whose reply was never read is there once when it is repeated', async () => {
  const keys = Array.from({ length: 40 }, (_, n) => `unread-${n}`);
  await Promise.all(
    keys.map(async (key, n) => {
      const { head, body } = submission(key);
      await sendAndReset(head + body, n % 4);
    }),
  );
  for (const key of keys) {
    const reply = await post(server.url, server.token, key, submission(key).body);
    expect([200, 201]).toContain(reply?.status);
  }
  expect((await named('unread-')).toSorted()).toEqual(keys.toSorted());
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});

test('an agent whose calls are cut at random bytes: each job once, logs complete', async () => {
  server.agent('cut', { url: proxy.url });
  await server.online(1);
  // Every connection is cut: one half within the first calls, the other after some uploads of logs.
  proxy.cutAfter = () =>
    Math.random() < 0.5 ? 100 + 20_000 * Math.random() : 100_000 + 200_000 * Math.random();
  const script = 'i=0; while [ $i -lt 800 ]; do i=$((i+1)); echo line $i of a job; done; exit 4';
  const expected = Array.from({ length: 800 }, (_, i) => `line ${i + 1} of a job\n`).join('');
  let jobs = 0;
  while (proxy.cuts() < ENOUGH_CUTS) {
    const wave: string[] = [];
    for (let n = 0; n < 4; n++) wave.push(await server.submit(shell(script)));
    for (const job of wave) {
      expect(await server.ended(job, 60_000)).toMatchObject({ state: 'FAILED', exitCode: 4 });
      expect(await server.attempts(job)).toMatchObject([{ n: 1, cause: 'exited' }]);
      expect((await server.stdout(job)) === expected).toBe(true);
    }
    jobs += wave.length;
  }
  console.log(`${proxy.cuts()} connections of an agent were cut while ${jobs} jobs ran`);
});
