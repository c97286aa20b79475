/** Connections of those refused wait in line, are read again in turn, and are never forgotten. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { Parking } from './parking.ts';

const REQUEST = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}';

let end: (() => void) | undefined;
afterEach(() => end?.());

/** Every answer parks its connection for `seconds`; the body is never read. */
async function start(seconds: number) {
  const parking = new Parking(systemClock);
  let seen = 0;
  const server = createServer((request: IncomingMessage, response) => {
    seen++;
    response.writeHead(429, ['content-length', '0']).end();
    parking.park(request.socket, seconds);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  end = () => {
    parking.stop();
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  const open = async (count: number): Promise<Socket[]> => {
    const opened = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
    sockets.push(...opened);
    await Promise.all(opened.map((socket) => once(socket, 'connect')));
    return opened;
  };
  return { parking, open, seen: () => seen };
}

async function ask(sockets: Socket[]): Promise<void> {
  await Promise.all(
    sockets.map((socket) => {
      socket.write(REQUEST);
      return once(socket, 'data');
    }),
  );
}

test('each is answered at once, then read again in turn: the more, the later', async () => {
  const { parking, open, seen } = await start(60);
  const sockets = await open(200);
  await ask(sockets);
  await expect.poll(() => parking.size).toBeGreaterThan(0);
  const before = performance.now();
  await ask(sockets);
  // 200 in line at 2,000 a second, and no more than a few ticks besides.
  expect(performance.now() - before).toBeGreaterThan(20);
  expect(seen()).toBe(400);
  await expect.poll(() => parking.size).toBe(0);
  await ask(sockets);
});

test('none waits longer than it was told, and one that left is no harm', async () => {
  const { parking, open } = await start(0.001);
  const [gone, ...others] = await open(500);
  await ask([gone!, ...others]);
  gone!.destroy();
  const before = performance.now();
  await ask(others);
  expect(performance.now() - before).toBeLessThan(1000);
  parking.stop();
  expect(parking.size).toBe(0);
  await delay(20);
  await ask(others);
});
