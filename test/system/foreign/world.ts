/** A gateway of ours before a coordinator that nobody here has written in our language. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readEvents, type SseEvent } from '../../../src/protocol/sse.ts';
import { DROVER, startProcess, tail, type TestProcess } from '../../support/processes.ts';
import { grpcPython } from '../../support/python.ts';
import { until } from '../../support/wait.ts';

export const SECRET = 'what-gateways-and-coordinators-share';
export const ADA = 'token-of-ada';
export const BOB = 'token-of-bob';
/** Of the same tenants; first seen when a test needs a token that is remembered for 5 s. */
export const EVE = 'token-of-eve';
export const DAN = 'token-of-dan';

/** A line that the coordinator tells about itself. */
interface Told {
  call?: string;
  ended?: string;
  job?: string;
  after?: number;
  pages?: number;
  metadata?: Record<string, string>;
  command?: string[];
}

interface Answer {
  status: number;
  headers: Headers;
  text: string;
  json: {
    data?: Record<string, unknown>;
    meta?: Record<string, unknown>;
    code?: string;
    detail?: string;
    hint?: string;
    requestId?: string;
  };
}

interface AskOptions {
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface ForeignWorld {
  url: string;
  gateway: TestProcess;
  told(): Told[];
  ask(request: string, options?: AskOptions): Promise<Answer>;
  /** Server-sent events, until the signal or the end. */
  events(path: string, options?: AskOptions & { signal?: AbortSignal }): AsyncGenerator<SseEvent>;
  /** The lines of the gateway's log that hold this text. */
  logged(text: string): Record<string, unknown>[];
  kill(): Promise<void>;
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startForeignWorld(): Promise<ForeignWorld> {
  const root = mkdtempSync(path.join(tmpdir(), 'drover-foreign-'));
  const stubs = path.join(root, 'stubs');
  mkdirSync(stubs);
  const python = grpcPython(stubs);
  const script = path.join(import.meta.dirname, 'coordinator.py');
  let output = '';
  let port = 0;
  let coordinator: TestProcess | undefined;
  const lines = (): Told[] => toldIn(output + (coordinator?.output() ?? ''));
  const start = async (): Promise<void> => {
    output += coordinator?.output() ?? '';
    const process = startProcess([python, script, stubs, String(port)], { cwd: root });
    coordinator = process;
    port = await until(`the coordinator listens: ${process.output()}`, () => {
      const found = /\{"port": (\d+)\}/.exec(process.output());
      return found ? Number(found[1]) : 0;
    });
  };
  await start();
  const gateway = startProcess(
    [DROVER, 'gateway', '--coordinator', `grpc://127.0.0.1:${port}`, '--port', '0'],
    {
      cwd: root,
      env: {
        HOME: root,
        DROVER_DATA: path.join(root, 'data'),
        DROVER_GRPC_API_SECRET: SECRET,
        DROVER_GATEWAY_CACHE_AFTER_MS: '300',
      },
    },
  );
  const url = await until(
    `the gateway listens: ${gateway.output()}`,
    () => /"url":"([^"]+)","msg":"gateway listens"/.exec(gateway.output())?.[1],
  );
  return {
    url,
    gateway,
    told: lines,
    ask: (request, options) => ask(url, request, options),
    events: (path, options) => events(url, path, options),
    logged: (text) =>
      gateway
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{') && line.includes(text))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    kill: async () => void (await coordinator?.stop('SIGKILL')),
    restart: start,
    async close() {
      const { code } = await gateway.stop();
      await coordinator?.stop('SIGKILL');
      rmSync(root, { recursive: true, force: true });
      if (code !== 0) throw new Error(`the gateway ended with ${code}:\n${tail(gateway.output())}`);
    },
  };
}

function toldIn(output: string): Told[] {
  const whole = output.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
  return whole.map((line) => JSON.parse(line) as Told);
}

function send(url: string, request: string, options: AskOptions & { signal?: AbortSignal }) {
  const [method = 'GET', where = ''] = request.split(' ');
  const { token = ADA, body, headers = {}, signal } = options;
  return fetch(url + where, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
}

async function ask(url: string, request: string, options: AskOptions = {}): Promise<Answer> {
  const response = await send(url, request, options);
  const text = await response.text();
  const json = JSON.parse(text) as Answer['json'];
  return { status: response.status, headers: response.headers, text, json };
}

async function* events(
  url: string,
  where: string,
  options: AskOptions & { signal?: AbortSignal } = {},
): AsyncGenerator<SseEvent> {
  const response = await send(url, `GET ${where}`, options);
  if (!response.ok || !response.body)
    throw new Error(`${response.status}: ${await response.text()}`);
  yield* readEvents(response.body);
}
