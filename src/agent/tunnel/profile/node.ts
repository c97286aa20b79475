/**
 * Node by its own profiler: SIGUSR1 makes it listen for a debugger on the loopback, which is asked
 * for a CPU profile and then told to stop listening.
 */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { sleep, type Clock } from '../../../lib/clock.ts';
import { DroverError } from '../../../lib/errors.ts';
import type { ProfileOrder } from './profile.ts';

/** How long Node may take to open its debugger, which it does between two turns of its loop. */
const LISTEN_LIMIT_MS = 10_000;
const LOOK_MS = 50;
const ANSWER_LIMIT_MS = 30_000;
const SAMPLE_MICROS = 5_000;
/** Bit 10 - 1 of a mask of signals. */
const SIGUSR1_BIT = 1n << 9n;

const cpuProfile = z.object({
  nodes: z.array(
    z.object({
      id: z.int(),
      callFrame: z.object({ functionName: z.string(), url: z.string(), lineNumber: z.int() }),
      children: z.array(z.int()).optional(),
    }),
  ),
  samples: z.array(z.int()),
});
export type CpuProfile = z.infer<typeof cpuProfile>;
const debuggers = z.array(z.object({ webSocketDebuggerUrl: z.string() })).min(1);

export async function profileByNode(order: ProfileOrder): Promise<string> {
  const url = await openDebugger(order.pid, order.clock);
  const session = await connectDebugger(url);
  try {
    await session.call('Profiler.enable');
    await session.call('Profiler.setSamplingInterval', { interval: SAMPLE_MICROS });
    await session.call('Profiler.start');
    // What was compiled before is compiled anew, for which this is the only call: otherwise calls
    // that were inlined have no name, and a busy program looks as if it did nothing.
    await session.call('Profiler.startPreciseCoverage', { callCount: true });
    await session.call('Profiler.stopPreciseCoverage');
    await Promise.race([sleep(order.clock, order.seconds * 1000), aborted(order.signal)]);
    const { profile } = z
      .object({ profile: cpuProfile })
      .parse(await session.call('Profiler.stop'));
    return foldCpuProfile(profile);
  } finally {
    // A debugger that stays open would let anybody on the machine into the process.
    session.send('Runtime.evaluate', { expression: 'process._debugEnd()' });
    session.close();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function openDebugger(pid: number, clock: Clock): Promise<string> {
  if (!handlesSignal(pid)) {
    throw new DroverError(
      'UNAVAILABLE',
      `process ${pid} does not take SIGUSR1, which would end it`,
    );
  }
  const before = new Set(listeningPorts(pid));
  process.kill(pid, 'SIGUSR1');
  for (let waitedMs = 0; waitedMs < LISTEN_LIMIT_MS; waitedMs += LOOK_MS) {
    await sleep(clock, LOOK_MS);
    // One that listened already (--inspect) answers on a port it had before.
    const ports = listeningPorts(pid).toSorted(
      (a, b) => Number(before.has(a)) - Number(before.has(b)),
    );
    for (const port of ports) {
      const url = await debuggerAt(port);
      if (url !== undefined) return url;
    }
  }
  throw new DroverError(
    'UNAVAILABLE',
    `process ${pid} did not open its inspector: it may handle SIGUSR1 itself`,
  );
}

function handlesSignal(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0';
  return (BigInt(`0x${mask}`) & SIGUSR1_BIT) !== 0n;
}

/** By the sockets it holds and the kernel's table of those that listen on 127.0.0.1. */
function listeningPorts(pid: number): number[] {
  const own = new Set<string>();
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    try {
      own.add(/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? '');
    } catch {
      // Closed meanwhile.
    }
  }
  const ports: number[] = [];
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, 'latin1').split('\n').slice(1)) {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    const [address, port = '0'] = local.split(':');
    const listens = state === '0A' && address === '0100007F';
    if (listens && own.has(inode)) ports.push(Number.parseInt(port, 16));
  }
  return ports;
}

async function debuggerAt(port: number): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(1_000);
    const response = await fetch(`http://127.0.0.1:${port}/json/list`, { signal });
    return debuggers.parse(await response.json())[0]?.webSocketDebuggerUrl;
  } catch {
    // Something else that the program serves.
    return undefined;
  }
}

interface DebuggerSession {
  call(method: string, params?: object): Promise<unknown>;
  send(method: string, params?: object): void;
  close(): void;
}

async function connectDebugger(url: string): Promise<DebuggerSession> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const opened = Promise.withResolvers<void>();
  const fail = (error: Error): void => {
    opened.reject(error);
    for (const { reject } of waiting.values()) reject(error);
  };
  socket.on('open', () => opened.resolve());
  socket.on('error', fail);
  socket.on('close', () =>
    fail(new DroverError('UNAVAILABLE', 'the process closed its inspector')),
  );
  socket.on('message', (data) => {
    const { id, result, error } = JSON.parse((data as Buffer).toString('utf8')) as {
      id?: number;
      result?: unknown;
      error?: { message: string };
    };
    const waiter = waiting.get(id ?? 0);
    if (error) waiter?.reject(new DroverError('UNAVAILABLE', error.message));
    else waiter?.resolve(result);
  });
  await opened.promise;
  let last = 0;
  const send = (method: string, params: object = {}): void =>
    socket.send(JSON.stringify({ id: ++last, method, params }));
  return {
    send,
    async call(method, params) {
      const waiter = Promise.withResolvers<unknown>();
      const timer = setTimeout(
        () => waiter.reject(new DroverError('TIMEOUT', `the process did not answer ${method}`)),
        ANSWER_LIMIT_MS,
      );
      send(method, params);
      const id = last;
      waiting.set(id, waiter);
      return waiter.promise.finally(() => {
        clearTimeout(timer);
        waiting.delete(id);
      });
    },
    close: () => socket.close(),
  };
}

/** Time in which nothing ran is left out. */
export function foldCpuProfile({ nodes, samples }: CpuProfile): string {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map<number, number>();
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node.id);
  const stackOf = (id: number): string => {
    const names: string[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const frame = byId.get(at)?.callFrame;
      if (frame && frame.functionName !== '(root)') names.push(frameName(frame));
    }
    return names.toReversed().join(';');
  };
  const counts = new Map<number, number>();
  for (const id of samples) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts]
    .filter(([id]) => byId.get(id)?.callFrame.functionName !== '(idle)')
    .map(([id, count]) => `${stackOf(id)} ${count}\n`)
    .filter((line) => !line.startsWith(' '))
    .join('');
}

function frameName({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']) {
  const file = url.split('/').at(-1);
  const place = file ? ` (${file}:${lineNumber + 1})` : '';
  return `${functionName || '(anonymous)'}${place}`.replaceAll(';', ':');
}
