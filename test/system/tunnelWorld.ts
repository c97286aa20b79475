/**
 * A gateway and an agent joined by real WebSockets on the loopback, with a controller made of a few
 * lines.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTunnelDialer, type TunnelDialer } from '../../src/agent/tunnel/dialer.ts';
import { tunnelKinds } from '../../src/agent/tunnel/kinds.ts';
import { bearerOf, checkScope, type Authorize } from '../../src/gateway/auth/authorize.ts';
import type { Access, Audited } from '../../src/gateway/tunnel/accesses.ts';
import { createExecRoute } from '../../src/gateway/tunnel/exec.ts';
import { Load } from '../../src/gateway/load/load.ts';
import { createTunnelHub, type TunnelHub } from '../../src/gateway/tunnel/hub.ts';
import { createInsideRoute } from '../../src/gateway/tunnel/inside.ts';
import { attachUpgrades } from '../../src/gateway/tunnel/upgrades.ts';
import { systemClock, type Clock } from '../../src/lib/clock.ts';
import { DroverError } from '../../src/lib/errors.ts';
import { silentLog } from '../../src/lib/log.ts';
import { systemRandom } from '../../src/lib/random.ts';
import type { Principal } from '../../src/model/token.ts';
import type { TunnelOrder } from '../../src/protocol/agent.ts';
import type { TunnelTicket } from '../../src/protocol/coordinator.ts';
import type { ExecStart } from '../../src/protocol/tunnel/exec.ts';
import { connectExec, execUrl, type ExecSession } from '../../src/protocol/tunnel/execClient.ts';
import { hashTicket } from '../../src/protocol/tunnel/tickets.ts';

export const TASK = 'j1.0';
export const UID = 'uid-1';
export const TOKEN = 'secret';
export const STREAMS_PER_TENANT = 200;

export interface TunnelWorld {
  url: string;
  folder: string;
  hub: TunnelHub;
  dialer: TunnelDialer;
  /** Orders the controller gave; `deliver` decides what becomes of them. */
  orders: TunnelOrder[];
  settings: {
    deliver(order: TunnelOrder): void;
    /** Runs before openTunnel answers, after the order was delivered. */
    beforeReply(): Promise<void>;
    scopes: Principal['scopes'];
    /** What the runtime does to put a command into the attempt's cgroup. */
    join(pid: number): void;
    audited: Audited;
  };
  /** What was recorded of those who looked inside. */
  accesses: Access[];
  registered: { url: string; leaseMs: number }[];
  joined: number[];
  exec(start: Partial<ExecStart> & { command: string[] }, task?: string): Promise<ExecSession>;
  close(): Promise<void>;
}

export async function tunnelWorld(options: { clock?: Clock } = {}): Promise<TunnelWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-tunnel-'));
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [orders, registered, joined]: [TunnelOrder[], TunnelWorld['registered'], number[]] = [
    [],
    [],
    [],
  ];
  const accesses: Access[] = [];
  const dialer = agentDialer(folder, (pid) => settings.join(pid));
  const settings: TunnelWorld['settings'] = {
    deliver: (order) => dialer.dial(order),
    beforeReply: () => Promise.resolve(),
    scopes: ['jobs:manage'],
    join: (pid) => void joined.push(pid),
    audited: async (access) => void accesses.push(access),
  };
  const clock = options.clock ?? systemClock;
  const load = new Load({ streamsPerTenant: STREAMS_PER_TENANT });
  const hub = createTunnelHub({
    coordinator: {
      registerGateway: async (gatewayUrl, leaseMs) =>
        void registered.push({ url: gatewayUrl, leaseMs }),
      openTunnel: (_who, task, gatewayUrl) => openTunnel(task, gatewayUrl, orders, settings),
    },
    publicUrl: url,
    clock,
    log: silentLog,
    audited: (access) => settings.audited(access),
    holdStream: (who) => load.holdStream(who),
  });
  const authenticate = async (token: string): Promise<Principal | undefined> =>
    token === TOKEN ? principal(settings.scopes) : undefined;
  const authorize: Authorize = async (request, scope) =>
    checkScope(await authenticate(bearerOf(request)), scope);
  const parts = { hub, authenticate, authorize, clock, log: silentLog };
  const routes = [hub.route, createExecRoute(parts), createInsideRoute(parts)];
  const upgrades = attachUpgrades(server, routes, {
    clock: systemClock,
    log: silentLog,
    random: systemRandom,
  });
  return {
    url,
    folder,
    hub,
    dialer,
    orders,
    settings,
    registered,
    joined,
    accesses,
    exec: (start, task = TASK) =>
      connectExec({ url: execUrl(url, task), token: TOKEN, start: { tty: false, ...start } }),
    async close() {
      hub.close();
      await dialer.close();
      await upgrades.close();
      server.close();
      await once(server, 'close');
      rmSync(folder, { recursive: true });
    },
  };
}

export function agentDialer(folder: string, join = (_pid: number): void => {}): TunnelDialer {
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', DROVER_TASK: TASK };
  const members = (): number[] => [process.pid];
  const context = { cwd: folder, env, joinCgroup: join, members };
  const kinds = tunnelKinds({
    execContext: (uid) => (uid === UID ? context : undefined),
    clock: systemClock,
    log: silentLog,
  });
  return createTunnelDialer({
    kinds,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
}

async function openTunnel(
  task: string,
  gatewayUrl: string,
  orders: TunnelOrder[],
  settings: TunnelWorld['settings'],
): Promise<TunnelTicket> {
  if (!task.startsWith('j')) throw new DroverError('NOT_FOUND', `no task ${task}`);
  const order = { gatewayUrl, ticket: randomBytes(16).toString('hex') };
  orders.push(order);
  settings.deliver(order);
  await settings.beforeReply();
  const attempt = task === TASK ? UID : 'uid-of-another-machine';
  return { ticketHash: hashTicket(order.ticket), worker: 'w1', attempt };
}

export function principal(scopes: Principal['scopes']): Principal {
  return { token: 't1' as Principal['token'], tenant: 'default', user: 'root', scopes };
}

export interface Finished {
  stdout: string;
  stderr: string;
  code: number | null;
  signal: string | null;
}

export async function finish(session: ExecSession): Promise<Finished> {
  const streams: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] };
  for await (const { channel, bytes } of session.output) streams[channel].push(bytes);
  const { code, signal } = await session.exit;
  const [stdout, stderr] = [streams.stdout, streams.stderr].map((pieces) =>
    Buffer.concat(pieces).toString(),
  );
  return { stdout: stdout!, stderr: stderr!, code, signal };
}

/** Reads on until the output so far contains the text. */
export async function readUntil(
  output: AsyncIterator<{ bytes: Uint8Array }>,
  text: string | RegExp,
): Promise<string> {
  let seen = '';
  for (;;) {
    const next = await output.next();
    if (next.done) throw new Error(`the output ended before ${String(text)}: ${seen}`);
    seen += Buffer.from(next.value.bytes).toString();
    if (typeof text === 'string' ? seen.includes(text) : text.test(seen)) return seen;
  }
}

/** Fails when the process is still there after a while. */
export async function gone(pid: number): Promise<void> {
  for (let i = 0; i < 500 && existsSync(`/proc/${pid}`); i++) {
    if (/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (existsSync(`/proc/${pid}`)) throw new Error(`process ${pid} is still there`);
}
