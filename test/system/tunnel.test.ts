/** Who may dial, what happens when machines vanish, and that one tunnel serves many streams. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { DIAL_TIMEOUT_MS, GATEWAY_LEASE_MS } from '../../src/gateway/tunnel/hub.ts';
import { START_TIMEOUT_MS } from '../../src/gateway/tunnel/exec.ts';
import { systemClock, type Clock } from '../../src/lib/clock.ts';
import { TUNNEL_PROTOCOL } from '../../src/protocol/tunnel/limits.ts';
import { execUrl } from '../../src/protocol/tunnel/execClient.ts';
import { TICKET_MS } from '../../src/protocol/tunnel/tickets.ts';
import {
  agentDialer,
  finish,
  principal,
  readUntil,
  STREAMS_PER_TENANT,
  TASK,
  TOKEN,
  tunnelWorld,
  type TunnelWorld,
} from './tunnelWorld.ts';

let world: TunnelWorld | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

const who = principal(['jobs:manage']);

/** Resolves with the status: 101 when the gateway took the dial. */
async function dialStatus(url: string, ticket: string | undefined, protocol = TUNNEL_PROTOCOL) {
  const headers = ticket === undefined ? {} : { authorization: `Bearer ${ticket}` };
  const socket = new WebSocket(`${url}/v1/tunnel`, [protocol], { headers });
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    socket.on('open', () => {
      socket.terminate();
      resolve({ status: 101, body: '' });
    });
    socket.on('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (piece: Buffer) => (body += piece.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    socket.on('error', reject);
  });
}

/** A world whose agent is us: orders are kept and nobody dials. */
async function worldWithoutAgent(clock?: Clock): Promise<TunnelWorld> {
  const quiet = await tunnelWorld(clock ? { clock } : {});
  quiet.settings.deliver = () => {};
  return quiet;
}

/** The real clock, moved on by hand. */
function shiftedClock(): Clock & { shift(ms: number): void } {
  let shiftMs = 0;
  return {
    ...systemClock,
    bootMs: () => systemClock.bootMs() + shiftMs,
    shift(ms) {
      shiftMs += ms;
    },
  };
}

async function orderOf(quiet: TunnelWorld): Promise<{ ticket: string }> {
  // Nobody waits for the stream in these tests, only for its order.
  quiet.hub.openStream(who, TASK, { kind: 'exec' }).catch(() => {});
  while (quiet.orders.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setTimeout(resolve, 1));
  return quiet.orders.at(-1)!;
}

describe('a ticket', () => {
  test('is good for one dial', async () => {
    world = await worldWithoutAgent();
    const { ticket } = await orderOf(world);
    expect(await dialStatus(world.url, ticket)).toMatchObject({ status: 101 });
    const again = await dialStatus(world.url, ticket);
    expect(again.status).toBe(401);
    expect(JSON.parse(again.body)).toMatchObject({
      code: 'UNAUTHENTICATED',
      title: 'No valid token',
      detail: 'the tunnel ticket is unknown, used or expired',
      requestId: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
  });

  test('is refused after its time, and taken until then', async () => {
    const clock = shiftedClock();
    world = await worldWithoutAgent(clock);
    const early = await orderOf(world);
    clock.shift(TICKET_MS - 1000);
    expect(await dialStatus(world.url, early.ticket)).toMatchObject({ status: 101 });
    world.orders.length = 0;
    const late = await orderOf(world);
    clock.shift(TICKET_MS);
    expect(await dialStatus(world.url, late.ticket)).toMatchObject({ status: 401 });
  });

  test('that is wrong or missing, or of another version, is refused', async () => {
    world = await worldWithoutAgent();
    const { ticket } = await orderOf(world);
    expect(await dialStatus(world.url, 'guess')).toMatchObject({ status: 401 });
    expect(await dialStatus(world.url, undefined)).toMatchObject({ status: 401 });
    const other = await dialStatus(world.url, ticket, 'drover.tunnel.v9');
    expect(other.status).toBe(400);
    expect(other.body).toContain('the other end offers drover.tunnel.v9');
    expect(await dialStatus(world.url, ticket)).toMatchObject({ status: 101 });
  });

  test('may be dialled before the gateway has heard of it', async () => {
    world = await tunnelWorld();
    world.settings.beforeReply = () => new Promise((resolve) => setTimeout(resolve, 300));
    expect(await finish(await world.exec({ command: ['true'] }))).toMatchObject({ code: 0 });
  });
});

describe('tunnels', () => {
  test('the gateway is registered by lease', async () => {
    world = await tunnelWorld();
    expect(world.registered[0]).toEqual({ url: world.url, leaseMs: GATEWAY_LEASE_MS });
  });

  test('one tunnel serves all streams, and every stream is asked for', async () => {
    world = await tunnelWorld();
    const { hub } = world;
    await hub.openStream(who, TASK, { kind: 'exec' });
    const before = world.orders.length;
    // From here on a dial would find nobody, so the streams below prove that none is needed.
    world.settings.deliver = () => {};
    await Promise.all([1, 2, 3].map(() => hub.openStream(who, TASK, { kind: 'exec' })));
    expect(world.orders.length - before).toBe(3);
  });

  test('bulk has a tunnel of its own', async () => {
    world = await tunnelWorld();
    await world.hub.openStream(who, TASK, { kind: 'exec' });
    const delivered = world.orders.length;
    await world.hub.openStream(who, TASK, { kind: 'exec', priority: 'bulk' });
    await world.hub.openStream(who, TASK, { kind: 'exec', priority: 'bulk' });
    expect(world.orders.length).toBe(delivered + 2);
  });

  test('an agent started anew replaces its old tunnel', async () => {
    world = await tunnelWorld();
    const old = await world.hub.openStream(who, TASK, { kind: 'exec' });
    const anew = agentDialer(world.folder);
    world.settings.deliver = (order) => anew.dial(order);
    // The first goes to the old tunnel, and its order brings the new one.
    await world.hub.openStream(who, TASK, { kind: 'exec' });
    await old.closed;
    expect(await finish(await world.exec({ command: ['echo', 'anew'] }))).toMatchObject({
      stdout: 'anew\n',
    });
    await anew.close();
  });

  test('an order that comes twice is dialled once', async () => {
    world = await tunnelWorld();
    const { dialer } = world;
    world.settings.deliver = (order) => {
      dialer.dial(order);
      dialer.dial(order);
    };
    expect(await finish(await world.exec({ command: ['true'] }))).toMatchObject({ code: 0 });
  });

  test('a kind the agent does not have is refused by name', async () => {
    world = await tunnelWorld();
    const stream = await world.hub.openStream(who, TASK, { kind: 'teleport' });
    const reading = stream[Symbol.asyncIterator]().next();
    await expect(reading).rejects.toThrow('this agent has no streams of kind "teleport"');
  });

  test('a tenant has a limit of streams, which are given back when they end', async () => {
    world = await tunnelWorld();
    const { hub } = world;
    const open = (): Promise<unknown> =>
      hub.openStream(who, TASK, { kind: 'exec', priority: 'bulk' });
    const streams = [];
    for (let i = 0; i < STREAMS_PER_TENANT / 2; i++) {
      streams.push(await hub.openStream(who, TASK, { kind: 'exec' }));
      await open();
    }
    await expect(open()).rejects.toMatchObject({ code: 'TOO_MANY' });
    streams[0]!.reset('UNAVAILABLE', 'done');
    await streams[0]!.closed;
    await open();
  });
});

/** Waiting is cut short by running the timers of the gateway thirty times as fast. */
const fast: Clock = {
  ...systemClock,
  setTimer: (ms, run) => systemClock.setTimer(ms / 30, run),
};

describe('machines that vanish', () => {
  test('a client that connects and says nothing is sent away', async () => {
    world = await tunnelWorld({ clock: fast });
    const socket = new WebSocket(execUrl(world.url, TASK).replace('http', 'ws'), {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const startedAt = performance.now();
    const [message] = (await once(socket, 'message')) as [Buffer];
    expect(JSON.parse(message.toString())).toMatchObject({ type: 'error', code: 'TIMEOUT' });
    expect(performance.now() - startedAt).toBeGreaterThan(START_TIMEOUT_MS / 30 - 50);
  });

  test('a worker that does not dial is an error with what to try', async () => {
    world = await worldWithoutAgent(fast);
    const failed = world.hub.openStream(who, TASK, { kind: 'exec' });
    await expect(failed).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: `worker w1 did not dial back within ${DIAL_TIMEOUT_MS / 1000} s`,
      hint: `see \`drover workers\`, and whether it can reach ${world.url}`,
    });
  });

  test('an order that is lost is made up for', async () => {
    world = await tunnelWorld({ clock: fast });
    const { dialer } = world;
    let lost = 2;
    world.settings.deliver = (order) => {
      if (lost-- <= 0) dialer.dial(order);
    };
    expect(await finish(await world.exec({ command: ['true'] }))).toMatchObject({ code: 0 });
  });

  test('an agent killed during an exec: the client is told, the command ends', async () => {
    world = await tunnelWorld();
    const agent = agentProcess(world.folder);
    world.settings.deliver = (order) => void agent.stdin!.write(`${JSON.stringify(order)}\n`);
    const session = await world.exec({ command: ['bash', '-ic', 'echo $$; sleep 100'], tty: true });
    const output = session.output[Symbol.asyncIterator]();
    const pid = Number(/(\d+)\r\n/.exec(await readUntil(output, /\d+\r\n/))![1]);
    agent.kill('SIGKILL');
    await once(agent, 'exit');
    const end = (async () => {
      for (;;) if ((await output.next()).done) return;
    })();
    await expect(end).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(session.exit).rejects.toThrow('the tunnel to the machine ended');
    // Without its terminal the shell gets a hangup from the kernel.
    await expect.poll(() => isAlive(pid), { timeout: 5000 }).toBe(false);
  });

  test('an agent that stops ends what it ran, and says so', async () => {
    world = await tunnelWorld();
    const session = await world.exec({ command: ['sh', '-c', 'echo $$; exec sleep 100'] });
    const output = session.output[Symbol.asyncIterator]();
    const pid = Number(await readUntil(output, '\n'));
    await world.dialer.close();
    expect(isAlive(pid)).toBe(false);
    await expect(output.next()).rejects.toThrow('the agent is stopping');
  });

  test('a gateway that stops tells its clients', async () => {
    const stopping = await tunnelWorld();
    const session = await stopping.exec({ command: ['sleep', '100'] });
    const result = finish(session);
    result.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 200));
    await stopping.close();
    await expect(result).rejects.toThrow('the gateway is stopping');
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** An agent in a process of its own, which dials the orders it reads. */
function agentProcess(folder: string): ChildProcess {
  const world = import.meta.resolve('./tunnelWorld.ts');
  const script = `
    import { createInterface } from 'node:readline';
    const { agentDialer } = await import(${JSON.stringify(world)});
    const dialer = agentDialer(${JSON.stringify(folder)});
    for await (const line of createInterface(process.stdin)) dialer.dial(JSON.parse(line));
  `;
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'inherit', 'inherit'],
    // What a killed agent leaves behind goes with the world's folder.
    env: { ...process.env, TMPDIR: folder },
  });
}
