/**
 * A person's session with the real processes: `drover up` in a home of its own, commands typed at
 * it, calls over HTTP. Nothing of it outlives `close`.
 */
import { spawn as spawnTerminal } from '@lydell/node-pty';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient, type DroverClient } from '../../src/protocol/client.ts';
import type { AttemptView, JobView } from '../../src/protocol/jobs.ts';
import type { SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import { sweep } from './leftovers.ts';

export const ROOT = path.resolve(import.meta.dirname, '../..');
export const DROVER = path.join(ROOT, 'drover');
/** Long enough for a machine that does five other things. */
const PATIENCE_MS = 60_000;

type Variables = Record<string, string>;

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  /** The same, byte for byte. */
  bytes: Buffer;
  stderr: string;
  errorBytes: Buffer;
}

export interface Typed {
  child: ChildProcess;
  stdout(): string;
  stderr(): string;
  ended: Promise<Ended>;
}

export interface TypeOptions {
  env?: Variables;
  cwd?: string;
  input?: string | Buffer;
}

/** Starts a program with nothing in its environment but PATH and what is given. */
export function type(program: string, args: string[], options: TypeOptions = {}): Typed {
  const env = { PATH: process.env['PATH'] ?? '', ...options.env };
  const child = spawn(program, args, { cwd: options.cwd ?? ROOT, env });
  const [out, err]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  child.stdin.on('error', () => undefined); // It may end without reading.
  if (options.input !== undefined) child.stdin.end(options.input);
  const stdout = (): string => Buffer.concat(out).toString();
  const stderr = (): string => Buffer.concat(err).toString();
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const [bytes, errorBytes] = [Buffer.concat(out), Buffer.concat(err)];
      resolve({ code, signal, stdout: stdout(), bytes, stderr: stderr(), errorBytes });
    });
  });
  return { child, stdout, stderr, ended };
}

/** Looks again until there is an answer; what was missing is in the error. */
export async function until<Result>(
  what: string,
  look: () => Promise<Result | undefined | false> | Result | undefined | false,
  limitMs = PATIENCE_MS,
): Promise<Result> {
  const giveUpAt = performance.now() + limitMs;
  let problem: unknown;
  for (;;) {
    try {
      const result = await look();
      if (result !== undefined && result !== false) return result;
      problem = undefined;
    } catch (error) {
      problem = error;
    }
    if (performance.now() > giveUpAt) {
      throw new Error(`not within ${limitMs} ms: ${what}`, { cause: problem });
    }
    await delay(25);
  }
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Parsed where it is JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
  body: Record<string, any>;
}

export interface CallOptions {
  token?: string;
  headers?: Record<string, string>;
  /** Sent as it is; `body` is sent as JSON. */
  raw?: string | Uint8Array;
}

/** One HTTP call as a foreign client would make it. */
export async function call(
  url: string,
  request: string,
  body?: unknown,
  { token, headers = {}, raw }: CallOptions = {},
): Promise<Answer> {
  const [method = 'GET', where = '/'] = request.split(' ');
  const all: Record<string, string> = { ...headers };
  if (token) all['authorization'] = `Bearer ${token}`;
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  if (content !== undefined) all['content-type'] ??= 'application/json';
  const init: RequestInit = { method, headers: all, signal: AbortSignal.timeout(PATIENCE_MS) };
  if (content !== undefined) init.body = content as NonNullable<RequestInit['body']>;
  const response = await fetch(url + where, init);
  const text = await response.text();
  let parsed: Answer['body'] = {};
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  if (isJson && text !== '') parsed = JSON.parse(text);
  return { status: response.status, headers: response.headers, text, body: parsed };
}

export interface Journey {
  home: string;
  dir: string;
  url: string;
  token: string;
  joinToken: string;
  client: DroverClient;
  up: Typed;
  env: Variables;
  /** What the children of `drover up` wrote about themselves. */
  log(): string;
  drover(...args: string[]): Promise<Ended>;
  start(args: string[], options?: TypeOptions): Typed;
  /** In a terminal of that size; resolves when it has ended. */
  terminal(args: string[], size: { cols: number; rows: number }, keys?: string): Promise<Ended>;
  api(request: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  submit(spec: SubmittedSpec): Promise<string>;
  ended(job: string): Promise<JobView>;
  running(job: string): Promise<AttemptView>;
  attempts(job: string): Promise<AttemptView[]>;
  /** Ctrl-C, and how it ended. */
  interrupt(): Promise<Ended>;
  close(): Promise<void>;
}

export interface JourneyOptions {
  args?: string[];
  env?: Variables;
  home?: string;
}

/** Short waits where the defaults are made for machines far away. */
const SETTINGS: Variables = { DROVER_GRPC_PORT: '0', DROVER_LEASES_LONG_POLL_MS: '2000' };

export async function startJourney(options: JourneyOptions = {}): Promise<Journey> {
  const home = options.home ?? mkdtempSync(path.join(tmpdir(), 'drover-journey-'));
  const dir = path.join(home, '.drover');
  const env = { HOME: home, ...SETTINGS, ...options.env };
  const up = type(DROVER, ['up', '--port', '0', ...(options.args ?? [])], { env });
  try {
    await until('drover up says that it is up', () => greeted(up));
  } catch (error) {
    up.child.kill('SIGKILL');
    throw error;
  }
  const connection = JSON.parse(readFileSync(path.join(dir, 'connection.json'), 'utf8')) as {
    url: string;
    token: string;
    joinToken: string;
  };
  const { url, token } = connection;
  const client = createClient({ url, token });
  const start = (args: string[], typed: TypeOptions = {}): Typed =>
    type(DROVER, args, { ...typed, env: { HOME: home, ...typed.env } });
  const journey: Journey = {
    home,
    dir,
    client,
    up,
    env,
    start,
    ...connection,
    log: () => readFileSync(path.join(dir, 'drover.log'), 'utf8'),
    drover: (...args) => start(args).ended,
    terminal: (args, size, keys) => inTerminal(args, { HOME: home }, size, keys),
    api: (request, body, more) => call(url, request, body, { token, ...more }),
    ...jobCalls(client),
    async interrupt() {
      up.child.kill('SIGINT');
      return up.ended;
    },
    async close() {
      try {
        if (up.child.exitCode === null) await cancelAll(client);
        up.child.kill('SIGTERM');
        await up.ended;
      } finally {
        sweep(home);
        rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      }
    },
  };
  return journey;
}

function greeted(up: Typed): boolean {
  if (up.stdout().includes('Ctrl-C')) return true;
  if (up.child.exitCode === null) return false;
  throw new Error(`drover up ended: ${up.stderr()}`);
}

function jobCalls(client: DroverClient) {
  const attempts = async (job: string): Promise<AttemptView[]> =>
    (await client.listAttempts(job, { limit: 500 })).items;
  return {
    attempts,
    submit: async (spec: SubmittedSpec): Promise<string> =>
      (await client.submitJob(spec, crypto.randomUUID())).id,
    ended: (job: string): Promise<JobView> =>
      until(`job ${job} ends`, async () => {
        const view = await client.waitJob(job, 5000);
        return view.endedAtMs !== null && view;
      }),
    running: (job: string): Promise<AttemptView> =>
      until(`job ${job} runs`, async () =>
        (await attempts(job)).find(({ state }) => state === 'RUNNING'),
      ),
  };
}

function inTerminal(
  args: string[],
  env: Variables,
  size: { cols: number; rows: number },
  keys = '',
): Promise<Ended> {
  const terminal = spawnTerminal(DROVER, args, {
    ...size,
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm', ...env },
  });
  let output = '';
  terminal.onData((data) => {
    // Typed once the other side has said something, as a person would.
    if (output === '' && keys !== '') terminal.write(keys);
    output += data;
  });
  return new Promise((resolve) =>
    terminal.onExit(({ exitCode }) =>
      resolve({
        code: exitCode,
        signal: null,
        stdout: output,
        stderr: '',
        bytes: Buffer.from(output),
        errorBytes: Buffer.alloc(0),
      }),
    ),
  );
}

/** What still runs would outlive the test, as it should outlive `drover up`. */
async function cancelAll(client: DroverClient): Promise<void> {
  for (const state of ['RUNNING', 'PENDING']) {
    const { items } = await client.listJobs({ state, limit: 500 });
    for (const { id } of items) await client.cancelJob(id);
  }
  await until('all attempts are over', async () => {
    const { items } = await client.listWorkers({});
    return items.every(({ attempts, state }) => attempts === 0 || state !== 'ONLINE');
  }).catch((error: unknown) => console.error(String(error)));
}
