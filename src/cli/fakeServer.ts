/** A real HTTP server with jobs in memory that answers as the gateway does, for the CLI's tests. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TokenView, WorkerView } from '../protocol/fleet.ts';
import type { JobView, QueueEntry } from '../protocol/jobs.ts';
import { jobSpec, type SubmittedSpec } from '../protocol/jobSpec.ts';
import { fakeAccounts, type FakeAccounts } from '../protocol/fakeAccounts.ts';
import { fakeWhy } from '../protocol/fakeWhy.ts';
import { fakeReceipt } from '../protocol/fakeReceipt.ts';
import type { ReceiptView } from '../protocol/receipt.ts';
import type { WhyView } from '../protocol/why.ts';
import { answerAccounts } from './fakeAccountRoutes.ts';
import { addJob, endJob, type FakeJob } from './fakeJobs.ts';

export const FAKE_TOKEN = 'drv_test_token';

export interface FakeRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: unknown;
}

export interface FakeServer {
  url: string;
  jobs: Map<string, FakeJob>;
  workers: WorkerView[];
  tokens: TokenView[];
  queue: QueueEntry[];
  /** Laid over what the fake says by itself, by job. */
  explanations: Map<string, Partial<WhyView>>;
  receipts: Map<string, Partial<ReceiptView>>;
  accounts: FakeAccounts;
  /** Everything that was asked, in order. */
  requests: FakeRequest[];
  /** Looked at first; true means it has answered (or cut the connection) itself. */
  intercept: (request: FakeRequest, response: ServerResponse) => boolean;
  /** Called for every accepted job: the script of what it does. */
  onSubmit: (job: FakeJob) => void;
  /** Wakes followers and waiters after a job was changed. */
  changed(): void;
  close(): Promise<void>;
}

export async function startFakeServer(): Promise<FakeServer> {
  const wakers = new Set<() => void>();
  const keys = new Map<string, unknown>();
  const fake: FakeServer = {
    url: '',
    jobs: new Map(),
    workers: [],
    tokens: [],
    queue: [],
    explanations: new Map(),
    receipts: new Map(),
    accounts: fakeAccounts(),
    requests: [],
    intercept: () => false,
    onSubmit: () => {},
    changed() {
      for (const wake of wakers) wake();
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const handle = async (raw: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await readRequest(raw);
    fake.requests.push(request);
    if (fake.intercept(request, response)) return;
    const wait = (until: () => boolean, withinMs: number): Promise<void> =>
      waitUntil(wakers, response, until, withinMs);
    await answer({ fake, request, response, wait, keys });
  };
  const server = createServer((raw, response) => void handle(raw, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return fake;
}

interface Exchange {
  fake: FakeServer;
  request: FakeRequest;
  response: ServerResponse;
  wait(until: () => boolean, withinMs: number): Promise<void>;
  keys: Map<string, unknown>;
}

async function readRequest(raw: IncomingMessage): Promise<FakeRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of raw) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const url = new URL(raw.url ?? '/', 'http://fake');
  return {
    method: raw.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    headers: raw.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

async function waitUntil(
  wakers: Set<() => void>,
  response: ServerResponse,
  until: () => boolean,
  withinMs: number,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const check = (): void => {
    if (until()) resolve();
  };
  wakers.add(check);
  const timer = setTimeout(resolve, withinMs);
  response.on('close', resolve);
  check();
  await promise;
  clearTimeout(timer);
  wakers.delete(check);
}

async function answer(exchange: Exchange): Promise<void> {
  const { fake, request, response } = exchange;
  if (request.headers.authorization !== `Bearer ${FAKE_TOKEN}`) {
    return problem(response, 401, 'UNAUTHENTICATED', 'the token is not known');
  }
  const [, version, resource, id, action] = request.path.split('/');
  if (version !== 'v1') return problem(response, 404, 'NOT_FOUND', 'no such route');
  if (resource === 'jobs' && request.method === 'POST' && (!id || id === 'batch')) {
    return submit(exchange);
  }
  if (resource === 'jobs' && id) return answerJob(exchange, decodeURIComponent(id), action ?? '');
  if (resource === 'jobs') return page(exchange, listedJobs(exchange));
  if (resource === 'queue') return page(exchange, fake.queue);
  if (resource === 'cluster') return send(response, 200, { data: CLUSTER, meta: {} });
  if (resource === 'workers') return answerWorkers(exchange, id, action);
  if (resource === 'tokens') return answerTokens(exchange, id);
  if (resource === 'plan' || resource === 'budgets' || resource === 'usage') {
    return answerAccounts(request, response, fake.accounts);
  }
  problem(response, 404, 'NOT_FOUND', 'no such route');
}

const CLUSTER = {
  id: 'c1abc',
  name: 'lab',
  version: '0.1.0',
  epoch: 1,
  startedAtMs: 0,
  store: 'sqlite',
  workers: { online: 2, suspect: 0, draining: 1 },
  tasks: { pending: 3, assigned: 0, running: 4 },
  attemptLeaseMs: 300_000,
};

function submit({ fake, request, response, keys }: Exchange): void {
  const key = request.headers['idempotency-key'] as string;
  const batch = request.path.endsWith('/batch');
  const specs = batch
    ? (request.body as { jobs: SubmittedSpec[] }).jobs
    : [request.body as SubmittedSpec];
  let data = keys.get(key);
  if (data === undefined) {
    const ids = specs.map((spec) => addJob(fake, spec).view.id);
    data = batch ? { ids } : { id: ids[0], state: 'PENDING' };
    keys.set(key, data);
  }
  send(response, 201, { data, meta: {} });
}

function listedJobs({ fake, request }: Exchange): JobView[] {
  const wanted = ['state', 'name', 'owner'].flatMap((key): [keyof JobView, string][] => {
    const value = request.query.get(key);
    return value === null ? [] : [[key as keyof JobView, value]];
  });
  return [...fake.jobs.values()]
    .map((job) => job.view)
    .filter((view) => wanted.every(([key, value]) => view[key] === value));
}

async function answerJob(exchange: Exchange, id: string, action: string): Promise<void> {
  const { fake, request, response } = exchange;
  const job = fake.jobs.get(id);
  if (!job) return problem(response, 404, 'NOT_FOUND', `there is no job ${id}`);
  if (action === 'logs' && request.query.get('follow') === 'true') return follow(exchange, job);
  if (action === 'logs') return readLog(exchange, job);
  if (action === 'why') {
    const data = { ...fakeWhy(job.view), ...fake.explanations.get(id) };
    return send(response, 200, { data, meta: {} });
  }
  if (action === 'receipt') {
    return send(response, 200, {
      data: { ...fakeReceipt(job.view), ...fake.receipts.get(id) },
      meta: {},
    });
  }
  if (action === 'tasks') return page(exchange, job.tasks);
  if (action === 'attempts') return page(exchange, job.attempts);
  if (action === 'cancel') endJob(fake, job, { state: 'CANCELLED', reason: 'cancelled by ada' });
  if (action === 'wait') {
    const waitMs = Number(request.query.get('waitMs'));
    await exchange.wait(() => job.view.endedAtMs !== null, waitMs);
  }
  send(response, 200, { data: { ...job.view, spec: jobSpec.parse(job.spec) }, meta: {} });
}

function readLog({ request, response }: Exchange, job: FakeJob): void {
  const after = Number(request.query.get('after') ?? 0);
  const limit = 2; // Small pages, so that going on is tested too.
  const data = job.records.filter(({ seq }) => seq > after).slice(0, limit);
  const next = data.at(-1)?.seq ?? after;
  const complete = job.logEnded && next === (job.records.at(-1)?.seq ?? 0);
  send(response, 200, { data, meta: { next, complete } });
}

async function follow(exchange: Exchange, job: FakeJob): Promise<void> {
  const { request, response } = exchange;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  let after = Number(request.headers['last-event-id'] ?? 0);
  while (!response.destroyed) {
    for (const record of job.records.filter(({ seq }) => seq > after)) {
      after = record.seq;
      response.write(`event: log\nid: ${after}\ndata: ${JSON.stringify(record)}\n\n`);
    }
    if (job.logEnded) {
      response.end(`event: end\ndata: {}\n\n`);
      return;
    }
    await exchange.wait(() => job.logEnded || (job.records.at(-1)?.seq ?? 0) > after, 60_000);
  }
}

function answerWorkers(exchange: Exchange, id?: string, action?: string): void {
  const { fake, response } = exchange;
  if (!id) return page(exchange, fake.workers);
  const worker = fake.workers.find((candidate) => candidate.id === id);
  if (!worker) return problem(response, 404, 'NOT_FOUND', `there is no worker ${id}`);
  worker.draining = action === 'drain';
  send(response, 200, { data: worker, meta: {} });
}

function answerTokens(exchange: Exchange, id?: string): void {
  const { fake, request, response } = exchange;
  if (request.method === 'POST') {
    const data = { kind: 'user', ...(request.body as object), id: 't9', secret: 'drv_fresh' };
    return send(response, 201, { data, meta: {} });
  }
  if (request.method === 'GET') return page(exchange, fake.tokens);
  const token = fake.tokens.find((candidate) => candidate.id === id);
  if (!token) return problem(response, 404, 'NOT_FOUND', `there is no token ${id}`);
  token.revokedAtMs = Date.now();
  send(response, 200, { data: token, meta: {} });
}

function page({ request, response }: Exchange, items: unknown[]): void {
  const from = Number(request.query.get('cursor') ?? 0);
  const to = from + Number(request.query.get('limit') ?? 50);
  const nextCursor = to < items.length ? String(to) : null;
  send(response, 200, { data: items.slice(from, to), meta: { nextCursor } });
}

export function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

export function problem(
  response: ServerResponse,
  status: number,
  code: string,
  detail: string,
): void {
  send(response, status, { code, title: code, detail, requestId: 'r1' });
}
