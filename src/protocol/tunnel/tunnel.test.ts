/**
 * The tunnel's promises: complete and in order, fair, a stalled reader hurts nobody, memory
 * bounded.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../lib/random.ts';
import { TUNNEL_LIMITS } from './limits.ts';
import type { TunnelStream } from './stream.ts';
import { pair } from './tunnelPair.ts';

const open = { kind: 'exec', attemptUid: 'u1' };

async function readAll(stream: TunnelStream): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const bytes of stream) pieces.push(bytes);
  return Buffer.concat(pieces);
}

function pattern(seed: number, length: number): Buffer {
  const random = seededRandom(seed);
  return Buffer.from(random.hex(Math.ceil(length / 2)), 'hex').subarray(0, length);
}

test('random writes on many streams arrive complete and in order, both ways', async () => {
  const writes = fc.array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 8 });
  const plan = fc.array(writes, { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(plan, fc.integer(), async (streams, seed) => {
      const random = seededRandom(seed);
      const limits = { windowBytes: 20_000, socketBytes: 30_000 };
      const world = pair({ limits });
      const results = streams.map(async (sizes, index) => {
        const stream = world.gateway.open(open);
        const sent = sizes.map((size, n) => pattern(index * 100 + n, size));
        const reading = readAll(stream);
        for (const bytes of sent) await stream.write(bytes);
        stream.end();
        expect((await reading).equals(Buffer.concat(sent))).toBe(true);
        await stream.closed;
      });
      let echoes = 0;
      const progress = { done: false };
      const all = Promise.all(results).then(() => (progress.done = true));
      while (!progress.done) {
        const steps = Math.floor(random.next() * 6);
        for (let i = 0; i < steps; i++) {
          if (random.next() < 0.5) world.toAgent();
          else world.toGateway();
        }
        for (; echoes < world.accepted.length; echoes++) void echo(world.accepted[echoes]!);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await all;
      await world.settle();
      expect(world.gateway.streamCount + world.agent.streamCount).toBe(0);
    }),
    { numRuns: 25 },
  );
}, 60_000);

async function echo(stream: TunnelStream): Promise<void> {
  for await (const bytes of stream) await stream.write(bytes);
  stream.end();
}

test('a stalled reader blocks its own stream only, and holds one window at most', async () => {
  const world = pair();
  const stalled = world.gateway.open(open);
  const flowing = world.gateway.open(open);
  let stalledDone = false;
  const big = Buffer.alloc(4 * TUNNEL_LIMITS.windowBytes, 7);
  const stalledWrite = stalled.write(big).then(() => (stalledDone = true));
  const flowingWrite = flowing.write(big).then(() => flowing.end());
  await world.settle();
  const reading = readAll(world.accepted[1]!);
  await world.settle();
  await flowingWrite;
  expect((await reading).length).toBe(big.length);
  expect(stalledDone).toBe(false);
  const held = world.accepted[0]![Symbol.asyncIterator]();
  let drained = 0;
  while (drained < TUNNEL_LIMITS.windowBytes) drained += (await held.next()).value!.length;
  expect(drained).toBe(TUNNEL_LIMITS.windowBytes);
  stalled.reset('UNAVAILABLE', 'the client left');
  await expect(stalledWrite).rejects.toThrow('the client left');
});

test('streams take turns, frame by frame', async () => {
  const world = pair({ limits: { socketBytes: 1 } });
  const streams = [1, 2, 3].map(() => world.gateway.open(open));
  for (const stream of streams) void stream.write(Buffer.alloc(100_000));
  const order: number[] = [];
  while (order.length < 15) {
    const next = world.gatewayWire.queued.shift()!;
    if (next.bytes[0] === 2) order.push(next.bytes[4]!);
    next.sent();
  }
  expect(order.slice(3)).toEqual([1, 3, 5, 1, 3, 5, 1, 3, 5, 1, 3, 5]);
});

test('no more than socketBytes of data wait in the socket', () => {
  const world = pair();
  const queued = (): number =>
    world.gatewayWire.queued.reduce((sum, { bytes }) => sum + bytes.length, 0);
  for (let i = 0; i < 20; i++) void world.gateway.open(open).write(Buffer.alloc(400_000));
  expect(queued()).toBeGreaterThanOrEqual(TUNNEL_LIMITS.socketBytes);
  expect(queued()).toBeLessThan(TUNNEL_LIMITS.socketBytes + 2 * TUNNEL_LIMITS.frameBytes);
});

describe('the end of a stream', () => {
  test('a reset reaches the other side with code and message', async () => {
    const world = pair();
    const stream = world.gateway.open(open);
    const reading = readAll(stream);
    reading.catch(() => {});
    await world.settle();
    world.accepted[0]!.reset('NOT_FOUND', 'no such attempt');
    await world.settle();
    await expect(reading).rejects.toMatchObject({ code: 'NOT_FOUND', message: 'no such attempt' });
    await expect(stream.write(Buffer.from('x'))).rejects.toThrow('no such attempt');
  });

  test('what crosses a reset on the wire is ignored', async () => {
    const world = pair();
    const stream = world.gateway.open(open);
    await world.settle();
    void world.accepted[0]!.write(Buffer.from('late'));
    stream.reset('UNAVAILABLE', 'gone');
    await world.settle();
    expect(world.gateway.isOpen && world.agent.isOpen).toBe(true);
  });

  test('the end of the tunnel fails every stream and names the reason', async () => {
    const world = pair();
    const reading = readAll(world.gateway.open(open));
    reading.catch(() => {});
    world.gatewayWire.events!.close('the connection was lost (1006)');
    await expect(reading).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: 'the tunnel to the machine ended: the connection was lost (1006)',
    });
    expect(() => world.gateway.open(open)).toThrow('the tunnel to the machine ended');
  });
});

function data(id: number, length: number): Buffer {
  return Buffer.concat([Buffer.from([2, 0, 0, 0, id]), Buffer.alloc(length)]);
}

function opening(id: number): Buffer {
  return Buffer.concat([Buffer.from([1, 0, 0, 0, id]), Buffer.from(JSON.stringify(open))]);
}

describe('a peer that breaks the rules ends the tunnel, which says which', () => {
  const cases: [string, Buffer[], string][] = [
    ['garbage', [Buffer.from('hello there')], 'malformed tunnel frame: frame type 104'],
    ['data on no stream', [data(7, 1)], 'DATA on stream 7, never opened'],
    ['opened twice', [opening(1), opening(1)], 'stream 1 was opened twice'],
    ['opened with our id', [opening(2)], 'stream 2 is not for the peer to open'],
    ['an id of the past', [opening(3), opening(1)], 'stream 1 is not for the peer to open'],
    [
      'more than granted',
      [opening(1), ...Array.from({ length: 40 }, () => data(1, 16_000))],
      'stream 1 sent more than it was granted',
    ],
    [
      'granted more than a window',
      [opening(1), Buffer.from([3, 0, 0, 0, 1, 255, 0, 0, 0])],
      'stream 1 was granted more than a window',
    ],
    ['data after end', [opening(1), Buffer.from([4, 0, 0, 0, 1]), data(1, 1)], 'data after end'],
    [
      'more streams than allowed',
      Array.from({ length: TUNNEL_LIMITS.streams + 1 }, (_, i) => {
        const bytes = opening(1);
        bytes.writeUInt32BE(2 * i + 1, 1);
        return bytes;
      }),
      `more than ${TUNNEL_LIMITS.streams} streams`,
    ],
  ];
  test.each(cases)('%s', async (_name, messages, reason) => {
    const world = pair();
    for (const message of messages) world.agentWire.events!.message(message);
    expect(world.agentWire.closedWith).toContain(reason);
    expect(await world.agent.closed).toContain(reason);
  });

  test('text', async () => {
    const world = pair();
    world.agentWire.events!.foreign('a text message');
    expect(await world.agent.closed).toBe('a text message is no tunnel frame');
  });

  test('never reading', async () => {
    const world = pair();
    for (let i = 0; i < 40_000 && world.agent.isOpen; i++) {
      const bytes = opening(1);
      bytes.writeUInt32BE(2 * i + 1, 1);
      world.agentWire.events!.message(bytes);
      world.accepted.at(-1)!.reset('NOT_FOUND', 'no such attempt');
    }
    expect(await world.agent.closed).toBe('the other end of the tunnel does not read');
  });
});

test('the opener is told when the tunnel carries too many streams', () => {
  const world = pair();
  for (let i = 0; i < TUNNEL_LIMITS.streams; i++) world.gateway.open(open);
  expect(() => world.gateway.open(open)).toThrow(`carries ${TUNNEL_LIMITS.streams} streams`);
  expect(world.gateway.isOpen).toBe(true);
});

test('a silent peer is called dead after silentPings pings', async () => {
  const world = pair();
  const { pingIntervalMs, silentPings } = TUNNEL_LIMITS;
  for (let i = 0; i < 10; i++) {
    world.clock.advance(pingIntervalMs);
    world.gatewayWire.events!.pong();
  }
  expect(world.gateway.isOpen).toBe(true);
  expect(world.gatewayWire.pings).toBe(10);
  world.clock.advance(pingIntervalMs * (silentPings + 1));
  expect(await world.gateway.closed).toBe('the other end of the tunnel does not answer');
  expect(world.gatewayWire.closedWith).toBe('terminated');
});

test('an idle tunnel is closed after idleMs, one with a stream is not', async () => {
  const world = pair({ limits: { pingIntervalMs: 1e9 } });
  const stream = world.gateway.open(open);
  world.clock.advance(10 * TUNNEL_LIMITS.idleMs);
  expect(world.gateway.isOpen).toBe(true);
  stream.reset('UNAVAILABLE', 'done');
  world.clock.advance(TUNNEL_LIMITS.idleMs - 1);
  expect(world.gateway.isOpen).toBe(true);
  world.clock.advance(1);
  expect(await world.gateway.closed).toBe('the tunnel was idle');
});
