/** Members of a gang meet over real sockets before they start; who does not come is named. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { systemClock, type Clock } from '../../lib/clock.ts';
import type { GangOrder } from '../../protocol/agent.ts';
import { COME_LIMIT_MS, GO_LIMIT_MS, preflight, REACH_LIMIT_MS } from './preflight.ts';

const controllers: AbortController[] = [];
afterEach(() => {
  for (const controller of controllers.splice(0)) controller.abort();
});

function meet(gang: GangOrder, clock: Clock = systemClock): Promise<string | null> {
  const controller = new AbortController();
  controllers.push(controller);
  return preflight(gang, clock, controller.signal);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function gangOf(size: number, more: Partial<GangOrder> = {}): Promise<GangOrder[]> {
  const master = { worker: 'gpu-00', address: '127.0.0.1', port: await freePort() };
  const members = Array.from({ length: size }, (_, rank) => ({
    ...{ worker: `gpu-0${rank}`, address: `10.0.0.${rank}` },
  }));
  return members.map(({ worker }, rank) => ({
    ...{ rank, size, round: 2, token: 'secret', worker, master },
    members: rank === 0 ? members : [],
    visibleGpus: [],
    ...more,
  }));
}

async function say(port: number, text: string): Promise<Socket> {
  const socket = createConnection({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Comes twice: rank 0 lets go of the first once it has seen the second. */
async function hasCome(port: number, hello: string): Promise<void> {
  const first = await say(port, hello);
  await Promise.all([once(first, 'close'), say(port, hello)]);
}

/** Moves time on until it is answered; sockets need real time in between. */
async function within(clock: ManualClock, limitMs: number, call: Promise<string | null>) {
  const seen: { answer?: string | null } = {};
  void call.then((answer) => (seen.answer = answer));
  for (let passedMs = 0; passedMs <= limitMs && seen.answer === undefined; passedMs += 250) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    await clock.advance(250);
  }
  await clock.settle();
  return seen.answer;
}

test('in any order, and then the port is free without asking for its reuse', async () => {
  const gang = await gangOf(4);
  const later = gang.toReversed().map((member) => meet(member));
  expect(await Promise.all(later)).toEqual([null, null, null, null]);
  const { port } = gang[0]!.master!;
  const bind = `import socket; s = socket.socket(); s.bind(('', ${port})); s.listen(); print('ok')`;
  expect(String(execFileSync('python3', ['-c', bind]))).toBe('ok\n');
});

test('a rank that never comes is named by rank 0, with its worker and address', async () => {
  const clock = new ManualClock();
  const gang = await gangOf(4);
  const lead = meet(gang[0]!, clock);
  await hasCome(gang[0]!.master!.port, 'drover-gang secret 2 2\n');
  expect(await within(clock, COME_LIMIT_MS + 1000, lead)).toBe(
    'ranks 1 on worker gpu-01 (10.0.0.1), 3 on worker gpu-03 (10.0.0.3) ' +
      'did not come to rank 0 within 25 s',
  );
});

test('a rank that cannot reach rank 0 says so, before rank 0 misses it', async () => {
  const clock = new ManualClock();
  const [, one] = await gangOf(2);
  const { port } = one!.master!;
  expect(await within(clock, REACH_LIMIT_MS + 1000, meet(one!, clock))).toBe(
    `rank 1 on worker gpu-01 could not reach rank 0 on worker gpu-00 at 127.0.0.1:${port}: ` +
      'connection refused',
  );
  expect(clock.bootMs()).toBeLessThan(COME_LIMIT_MS);
});

test('a rank 0 that answers and is then gone does not hold anybody for ever', async () => {
  const silent = createServer(() => undefined).listen(0);
  await once(silent, 'listening');
  const clock = new ManualClock();
  const master = { worker: 'gpu-00', address: '127.0.0.1', port: 0 };
  master.port = (silent.address() as AddressInfo).port;
  const [, one] = await gangOf(2, { master });
  const answer = await within(clock, GO_LIMIT_MS + 1000, meet(one!, clock));
  expect(answer).toMatch(/could not reach rank 0 .*: it answered, but never said go/);
  silent.close();
});

test('strangers and members of another round are not counted', async () => {
  const clock = new ManualClock();
  const gang = await gangOf(3);
  const { port } = gang[0]!.master!;
  const lead = meet(gang[0]!, clock);
  for (const text of [
    'GET / HTTP/1.1\r\nhost: x\r\n\r\n',
    'drover-gang wrong 2 1\n',
    'drover-gang secret 1 1\n',
    'drover-gang secret 2 0\n',
    'drover-gang secret 2 3\n',
    'x'.repeat(1000),
  ]) {
    await once(await say(port, text), 'close');
  }
  const mute = await say(port, 'drover-gang');
  await hasCome(port, 'drover-gang secret 2 2\n');
  expect(await within(clock, COME_LIMIT_MS + 1000, lead)).toMatch(/^rank 1 on worker gpu-01/);
  expect(mute.destroyed || mute.readableEnded).toBe(true);
});

test('a port that is taken is a fault of rank 0, told at once', async () => {
  const taken = createServer().listen(0);
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const master = { worker: 'gpu-00', address: '127.0.0.1', port };
  const [zero] = await gangOf(2, { master });
  expect(await meet(zero!)).toBe(
    `rank 0 on worker gpu-00 cannot listen on port ${port}: something else uses it`,
  );
  taken.close();
});

test('a member that comes again takes its own place; one that left is missing', async () => {
  const gang = await gangOf(3);
  const lead = meet(gang[0]!);
  const { port } = gang[0]!.master!;
  (await say(port, 'drover-gang secret 2 1\n')).destroy();
  await hasCome(port, 'drover-gang secret 2 1\n');
  const second = meet(gang[1]!);
  const third = meet(gang[2]!);
  expect(await Promise.all([lead, second, third])).toEqual([null, null, null]);
});

test('where rank 0 is over already, nobody waits for it', async () => {
  const [, one] = await gangOf(2, { master: null });
  expect(await meet(one!)).toBe('rank 0 was over before rank 1 on worker gpu-01 could start');
});
