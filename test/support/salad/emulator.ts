/**
 * SaladCloud in one process: its public API for one organization and project over real HTTP, with
 * the faults that it is known for. The official SDK is the judge of how like it is.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../src/lib/clock.ts';
import type { EmulatedGroup } from './groups.ts';
import type { Replica, RunningContainer, Times, World } from './instances.ts';
import { answer, type Answer, type Cloud } from './routes.ts';
import { problem, timeOf } from './wire.ts';

/** As in a good hour. */
const TIMES: Times = {
  prepareMs: 60_000,
  allocateMs: 20_000,
  downloadMs: 100_000,
  createMs: 5000,
  stopMs: 3000,
};

/** More than anybody should read. */
const HUGE = 20 * 1024 * 1024;

export interface EmulatorOptions {
  clock: Clock;
  times?: Partial<Times>;
  organization?: string;
  project?: string;
  apiKey?: string;
  /** Of replicas, over all groups. */
  quota?: number;
  /** With what a request above it is refused. */
  quotaStatus?: number;
  run?: (replica: Replica) => RunningContainer;
}

/**
 * lost: it is done, and the connection breaks. hang: it is done, and no answer comes. unsent: the
 * connection breaks before. html: an error page of whoever stands before the API. huge: a reply
 * without end.
 */
type FaultKind = 'too-many' | 'html' | 'lost' | 'hang' | 'unsent' | 'huge';

interface Fault {
  kind: FaultKind;
  method?: string;
  path?: RegExp;
  times?: number;
  retryAfter?: string;
  status?: number;
}

export interface SaladEmulator {
  url: string;
  apiKey: string;
  conduct: World['conduct'];
  cloud: Cloud;
  requests: { method: string; path: string }[];
  /** The next request of its kind, or so many; what it returns ends it before. */
  fail(fault: Fault): () => void;
  /** As it stands; throws where there is none of the name. */
  group(name?: string): EmulatedGroup;
  close(): Promise<void>;
}

export async function startSaladEmulator(options: EmulatorOptions): Promise<SaladEmulator> {
  const { clock, apiKey = 'the-key-of-salad' } = options;
  const faults: (Fault & { times: number })[] = [];
  const requests: SaladEmulator['requests'] = [];
  const cloud = createCloud(options);
  const { conduct } = cloud.world;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? '';
    const path = (request.url ?? '').replace(/^\/api\/public/, '');
    const body = await readBody(request);
    requests.push({ method, path });
    const fault = faults.find((one) => matches(one, method, path));
    if (fault && --fault.times <= 0) faults.splice(faults.indexOf(fault), 1);
    if (fault?.kind === 'unsent') return void request.socket.destroy();
    if (fault?.kind === 'too-many') return send(response, tooMany(fault.retryAfter));
    if (fault?.kind === 'html') return send(response, page(fault.status ?? 502));
    if (fault?.kind === 'huge') return send(response, { status: 200, html: 'x'.repeat(HUGE) });
    if (request.headers['salad-api-key'] !== apiKey) {
      return send(response, { status: 401, body: problem(401, 'Unauthorized', 'no valid key') });
    }
    const kind = request.headers['content-type'] ?? '';
    const answered = answer(cloud, { method, path, body, kind });
    if (fault?.kind === 'lost') return void request.socket.destroy();
    if (fault?.kind === 'hang') return;
    send(response, answered);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/api/public`,
    ...{ apiKey, conduct, cloud, requests },
    fail(fault) {
      const added = { times: 1, ...fault };
      faults.push(added);
      return () => void faults.splice(faults.indexOf(added), 1);
    },
    group(name) {
      const group = name === undefined ? [...cloud.groups.values()][0] : cloud.groups.get(name);
      if (!group) throw new Error(`SaladCloud has no group ${name ?? 'at all'} at ${clock.now()}`);
      return group;
    },
    async close() {
      for (const group of cloud.groups.values()) group.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function createCloud(options: EmulatorOptions): Cloud {
  const { clock } = options;
  let ids = 0;
  const events: Cloud['events'] = [];
  const conduct = {
    stuckInAllocating: false,
    neverReady: false,
    imageFailure: '',
    hideVariables: false,
  };
  const world: World = {
    clock,
    conduct,
    times: { ...TIMES, ...options.times },
    mintId: () => `${(++ids).toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`,
    run: options.run ?? (() => ({ kill() {}, ended: new Promise<number>(() => {}) })),
    event(group, instance, event_name) {
      const event_time = timeOf(clock.now());
      const machine = instance.machineId && { machine_id: instance.machineId };
      const about = { group: group.name, instance_id: instance.id, ...machine };
      events.push({ ...about, event_name, event_time, version: String(group.version) });
    },
  };
  return {
    world,
    events,
    organization: options.organization ?? 'a-lab',
    project: options.project ?? 'gpus',
    quota: options.quota ?? 100,
    quotaStatus: options.quotaStatus ?? 403,
    groups: new Map(),
    deletedAtMs: new Map(),
  };
}

function matches(fault: Fault, method: string, path: string): boolean {
  if (fault.method !== undefined && fault.method !== method) return false;
  return fault.path?.test(path) ?? true;
}

function tooMany(retryAfter: string | undefined): Answer {
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  return { status: 429, body: problem(429, 'Too Many Requests', 'slow down'), headers };
}

function page(status: number): Answer {
  const html =
    '<!DOCTYPE html><html><head><title>Bad gateway</title><style>b{}</style></head>' +
    '<body><h1>Error</h1><p>The origin did not answer.</p></body></html>';
  return { status, html };
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const text = Buffer.concat(parts).toString();
  return text === '' ? undefined : JSON.parse(text);
}

function send(response: ServerResponse, { status, body, html, headers = {} }: Answer): void {
  if (html !== undefined) {
    response.writeHead(status, { ...headers, 'content-type': 'text/html' }).end(html);
  } else if (body === undefined) {
    response.writeHead(status, headers).end();
  } else {
    const kind = { 'content-type': 'application/json' };
    response.writeHead(status, { ...headers, ...kind }).end(JSON.stringify(body));
  }
}
