/** The connector with a real shell and a controller that fails on demand. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { systemClock as clock } from '../lib/clock.ts';
import { silentLog as log } from '../lib/log.ts';
import { systemRandom as random } from '../lib/random.ts';
import { CONNECTOR_LIMITS, type ConnectorCommand } from '../model/connector.ts';
import type { ConnectorResult } from '../model/connector.ts';
import type { ExchangeReply, ExchangeRequest } from '../protocol/connector.ts';
import { ApiError, ConnectionError } from '../protocol/http.ts';
import { createLocalShell } from '../providers/remote/localShell.ts';
import { startConnector } from './connector.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface World {
  folder: string;
  /** Commands for the next call. */
  queue: ConnectorCommand[];
  results: Map<string, ConnectorResult>;
  calls: ExchangeRequest[];
  /** Thrown by the calls that come next. */
  failures: Error[];
  refused: ApiError[];
  accepted: number;
}

function start(before: Partial<World> = {}): World {
  const folder = mkdtempSync(path.join(tmpdir(), 'drover-connector-'));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  const world: World = {
    ...{ folder, queue: [], results: new Map(), calls: [], failures: [], refused: [] },
    ...{ accepted: 0, ...before },
  };
  const connector = startConnector({
    ...{ site: 'hpc', clock, random, log },
    shell: createLocalShell({ clock, random }),
    exchange: (request, signal) => answer(world, request, signal),
    onAccepted: () => world.accepted++,
    onRefused: (refusal) => world.refused.push(refusal),
  });
  closers.push(() => connector.close());
  return world;
}

async function answer(
  world: World,
  request: ExchangeRequest,
  signal: AbortSignal,
): Promise<ExchangeReply> {
  world.calls.push(request);
  const failure = world.failures.shift();
  if (failure !== undefined) throw failure;
  for (const result of request.results) world.results.set(result.id, result);
  const untilMs = clock.bootMs() + (request.wait ? 200 : 0);
  while (world.queue.length === 0 && clock.bootMs() < untilMs && !signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return { commands: world.queue.splice(0) };
}

function sh(id: string, script: string, more: Partial<ConnectorCommand> = {}): ConnectorCommand {
  return { id, argv: ['/bin/sh', '-c', script], stdin: '', timeoutMs: 10_000, ...more };
}

async function resultOf(world: World, id: string): Promise<ConnectorResult> {
  await expect.poll(() => world.results.has(id), { timeout: 10_000 }).toBe(true);
  return world.results.get(id)!;
}

test('commands run as they were said, with what they read and how they ended', async () => {
  const world = start();
  world.queue.push(
    sh('c1', 'cat; echo err >&2; exit 3', { stdin: 'hello ü\n' }),
    { id: 'c2', argv: ['printf', '%s', "it's *"], stdin: '', timeoutMs: 5000 },
    { id: 'c3', argv: ['no-such-program'], stdin: '', timeoutMs: 5000 },
    sh('c4', 'echo "[$DROVER_JOIN_TOKEN]"'),
  );
  expect(await resultOf(world, 'c1')).toEqual({
    ...{ id: 'c1', kind: 'ended', code: 3, stdout: 'hello ü\n', stderr: 'err' },
  });
  expect(await resultOf(world, 'c2')).toMatchObject({ code: 0, stdout: "it's *" });
  expect(await resultOf(world, 'c3')).toMatchObject({ kind: 'ended', code: 127 });
  expect(await resultOf(world, 'c4')).toMatchObject({ stdout: '[]\n' });
  expect(world.accepted).toBe(1);
  expect(new Set(world.calls.map(({ connector }) => connector)).size).toBe(1);
});

test('a long command keeps no other waiting, and its result does not wait for a call', async () => {
  const world = start();
  world.queue.push(sh('slow', 'sleep 1; echo slow'), sh('quick', 'echo quick'));
  expect(await resultOf(world, 'quick')).toMatchObject({ stdout: 'quick\n' });
  expect(world.results.has('slow')).toBe(false);
  expect(await resultOf(world, 'slow')).toMatchObject({ stdout: 'slow\n' });
});

test('a command is killed at its time, with what it started', async () => {
  const world = start();
  const file = path.join(world.folder, 'left');
  world.queue.push(sh('late', `(sleep 2; touch ${file}) & wait`, { timeoutMs: 300 }));
  expect(await resultOf(world, 'late')).toMatchObject({ kind: 'lost', reason: /300 ms|no end/ });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  expect(existsSync(file)).toBe(false);
});

test('told twice, a command runs once', async () => {
  const world = start();
  const file = path.join(world.folder, 'ran');
  const command = sh('once', `echo x >>${file}`);
  world.queue.push(command, command);
  await resultOf(world, 'once');
  world.queue.push(command);
  await expect.poll(() => world.queue.length).toBe(0);
  world.queue.push(sh('after', 'true'));
  await resultOf(world, 'after');
  expect(readFileSync(file, 'utf8')).toBe('x\n');
});

test('CONNECTOR_LIMITS.resultBytes: what prints more is lost as a whole, and says so', async () => {
  const world = start();
  const much = CONNECTOR_LIMITS.resultBytes + 1;
  world.queue.push(sh('much', `head -c ${much} /dev/zero | tr '\\0' x`), sh('fits', 'echo y'));
  expect(await resultOf(world, 'much')).toMatchObject({
    kind: 'lost',
    reason: /printed \d+ bytes/,
  });
  expect(await resultOf(world, 'fits')).toMatchObject({ stdout: 'y\n' });
});

test('what it has to say survives a controller that is away', async () => {
  const world = start();
  world.queue.push(sh('c1', 'echo kept'));
  const away = new ConnectionError('http://x', new Error('reset'));
  await expect.poll(() => world.queue.length).toBe(0);
  world.failures.push(away, away, away);
  expect(await resultOf(world, 'c1')).toMatchObject({ stdout: 'kept\n' });
  world.queue.push(sh('c2', 'echo again'));
  expect(await resultOf(world, 'c2')).toMatchObject({ stdout: 'again\n' });
  expect(world.refused).toEqual([]);
});

test('refused at the first word it ends; later it goes on trying', async () => {
  const denied = new ApiError(403, { code: 'PERMISSION_DENIED', detail: 'another site' });
  const wrong = start({ failures: [denied] });
  await expect.poll(() => wrong.refused).toEqual([denied]);
  const calls = wrong.calls.length;
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(wrong.calls.length).toBe(calls);
  const world = start();
  await expect.poll(() => world.accepted).toBe(1);
  world.failures.push(denied);
  await expect.poll(() => world.failures.length).toBe(0);
  world.queue.push(sh('c1', 'echo on'));
  expect(await resultOf(world, 'c1')).toMatchObject({ stdout: 'on\n' });
  expect(world.refused).toEqual([]);
});

test('a result that is never taken holds up no other', async () => {
  const world = start();
  world.queue.push(sh('bad', 'echo bad'));
  const refusing = new ApiError(413, { code: 'BODY_TOO_LARGE' });
  await expect.poll(() => world.calls.length).toBeGreaterThan(0);
  const before = answerOnce(world, 'bad', refusing);
  await before;
  world.queue.push(sh('good', 'echo good'));
  expect(await resultOf(world, 'good')).toMatchObject({ stdout: 'good\n' });
});

/** Refuses the call that brings this result. */
async function answerOnce(world: World, id: string, failure: ApiError): Promise<void> {
  const push = world.calls.push.bind(world.calls);
  const refused = new Promise<void>((resolve) => {
    world.calls.push = (...requests) => {
      if (requests.some(({ results }) => results.some((one) => one.id === id))) {
        world.failures.unshift(failure);
        world.calls.push = push;
        resolve();
      }
      return push(...requests);
    };
  });
  await refused;
  expect(world.results.has(id)).toBe(false);
}
