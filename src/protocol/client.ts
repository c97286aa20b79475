/** The TypeScript client: every REST call, typed, with safe retries and logs that resume. */
import { setTimeout as delay } from 'node:timers/promises';
import type { BudgetInput, BudgetView, PlanView, UsageQuery, UsageRow } from './budgets.ts';
import type { CapsuleView } from './capsule.ts';
import type { CollectionView, DataInput, DataView } from './dataSets.ts';
import type { ClusterView, CreateToken, TokenView, WorkerView } from './fleet.ts';
import {
  ApiError,
  CALL_TIMEOUT_MS,
  asConnectionError,
  call,
  mayPass,
  retryPauseMs,
  send,
  type Call,
  type HttpOptions,
  type Problem,
} from './http.ts';
import type {
  AttemptView,
  CheckpointView,
  EventView,
  JobView,
  LogRecordView,
  QueueEntry,
  ResultView,
  TaskView,
} from './jobs.ts';
import type { SubmittedSpec } from './jobSpec.ts';
import { readEvents, type SseEvent } from './sse.ts';
import type { ReceiptView } from './receipt.ts';
import type { WhyView } from './why.ts';

export { ApiError, ConnectionError } from './http.ts';

export interface ListPage<Item> {
  items: Item[];
  /** Null at the end. */
  nextCursor: string | null;
}

export interface PageOptions {
  cursor?: string | undefined;
  limit?: number | undefined;
}

export interface TaskPageOptions extends PageOptions {
  /** Only this task's, by index. */
  task?: number | undefined;
}

export interface JobFilters {
  state?: string | undefined;
  name?: string | undefined;
  owner?: string | undefined;
  parent?: string | undefined;
}

export interface LogOptions {
  /** Only this task's index. */
  task?: number | undefined;
  sinceMs?: number | undefined;
  /** At most this many lines before the end. */
  tail?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Told each time the stream broke and is opened again. */
  onReconnect?: (error: unknown) => Promise<void>;
}

/** What is known at the moment of acceptance. */
export type SubmittedJob = Pick<JobView, 'id' | 'state'>;

/** Every blob and every manifest is looked at. */
const COLLECT_TIMEOUT_MS = 3_600_000;
/** How long a broken log stream is reopened: a controller may be away for minutes. */
const FOLLOW_RETRY_WINDOW_MS = 600_000;

export type DroverClient = ReturnType<typeof createClient>;

export function createClient(options: HttpOptions) {
  const get = async <Data>(path: string, query?: Call['query']): Promise<Data> =>
    (await call<Data>(options, path, query ? { query } : {})).data;
  const post = async <Data>(path: string, request: Call = {}): Promise<Data> =>
    (await call<Data>(options, path, { method: 'POST', ...request })).data;
  const list = async <Item>(path: string, query: Call['query']): Promise<ListPage<Item>> => {
    const { data, meta } = await call<Item[]>(options, path, query ? { query } : {});
    return { items: data, nextCursor: (meta['nextCursor'] as string | null | undefined) ?? null };
  };

  return {
    url: options.url,

    /** Sent again after a broken connection under the same key, so one job at most comes of it. */
    submitJob: (spec: SubmittedSpec, idempotencyKey: string, signal?: AbortSignal) =>
      post<SubmittedJob>('/v1/jobs', keyed(spec, idempotencyKey, signal)),
    submitBatch: (jobs: SubmittedSpec[], idempotencyKey: string, signal?: AbortSignal) =>
      post<{ ids: string[] }>('/v1/jobs/batch', keyed({ jobs }, idempotencyKey, signal)),
    getJob: (id: string) => get<JobView>(jobPath(id)),
    listJobs: (filters: JobFilters & PageOptions) => list<JobView>('/v1/jobs', { ...filters }),
    cancelJob: (id: string) => post<JobView>(jobPath(id, '/cancel'), { repeatable: true }),
    listTasks: (id: string, page: PageOptions) =>
      list<TaskView>(jobPath(id, '/tasks'), { ...page }),
    listAttempts: (id: string, page: TaskPageOptions) =>
      list<AttemptView>(jobPath(id, '/attempts'), { ...page }),
    listEvents: (id: string, page: PageOptions) =>
      list<EventView>(jobPath(id, '/events'), { ...page }),
    /** What its tasks can resume from, by task, oldest first. */
    listCheckpoints: (id: string, page: TaskPageOptions) =>
      list<CheckpointView>(jobPath(id, '/checkpoints'), { ...page }),
    /** Asks what runs for one now; the tasks that were asked. */
    requestCheckpoint: async (id: string, task?: number): Promise<string[]> => {
      const request: Call = { query: { task }, repeatable: true };
      return (await post<{ tasks: string[] }>(jobPath(id, '/checkpoints'), request)).tasks;
    },
    /** What a task left; its first one's where none is named. */
    getResult: (id: string, task?: number) => get<ResultView>(jobPath(id, '/result'), { task }),
    /** The job when it ended, or as it is after `waitMs`. */
    waitJob: async (id: string, waitMs: number, signal?: AbortSignal): Promise<JobView> => {
      const timeoutMs = waitMs + CALL_TIMEOUT_MS;
      const request = { query: { waitMs }, timeoutMs, signal };
      return (await call<JobView>(options, jobPath(id, '/wait'), request)).data;
    },
    readLogs: (id: string, query: LogOptions) => readLogs(options, jobPath(id, '/logs'), query),
    followLogs: (id: string, query: LogOptions = {}) =>
      followLogs(options, jobPath(id, '/logs'), query),

    /** A link below the server's URL that opens what a task serves in a browser, once. */
    proxyLogin: async (endpoint: string, next: string): Promise<string> =>
      (await post<{ path: string }>('/v1/proxy/logins', { body: { endpoint, next } })).path,
    capsule: (id: string) => get<CapsuleView>(jobPath(id, '/capsule')),
    why: (id: string) => get<WhyView>(jobPath(id, '/why')),
    receipt: (id: string) => get<ReceiptView>(jobPath(id, '/receipt')),
    plan: (spec: SubmittedSpec) => post<PlanView>('/v1/plan', { body: spec, repeatable: true }),
    queue: (page: PageOptions) => list<QueueEntry>('/v1/queue', { ...page }),
    cluster: () => get<ClusterView>('/v1/cluster'),
    listWorkers: (page: PageOptions) => list<WorkerView>('/v1/workers', { ...page }),
    setDraining: (id: string, draining: boolean) =>
      post<WorkerView>(`/v1/workers/${encodeURIComponent(id)}/${draining ? 'drain' : 'undrain'}`, {
        repeatable: true,
      }),
    listBudgets: () => get<BudgetView[]>('/v1/budgets'),
    setBudget: async ({ tenant, user, ...body }: BudgetInput): Promise<BudgetView> => {
      // At a version it changes something once: the second try would be refused.
      const request: Call = { method: 'PUT', body, repeatable: body.version === null };
      return (await call<BudgetView>(options, budgetPath(tenant, user), request)).data;
    },
    deleteBudget: async (tenant: string, user: string): Promise<void> => {
      await call(options, budgetPath(tenant, user), { method: 'DELETE' });
    },
    listData: () => get<DataView[]>('/v1/data'),
    putData: async ({ name, ...body }: DataInput): Promise<DataView> => {
      const request: Call = { method: 'PUT', body, repeatable: true };
      return (await call<DataView>(options, dataPath(name), request)).data;
    },
    removeData: async (name: string): Promise<void> => {
      await call(options, dataPath(name), { method: 'DELETE' });
    },
    /** What nothing names any more; with `apply` it is removed. */
    collectBlobs: (apply: boolean) =>
      post<CollectionView>('/v1/gc', { body: { apply }, timeoutMs: COLLECT_TIMEOUT_MS }),
    usage: (query: UsageQuery) => get<UsageRow[]>('/v1/usage', { ...query }),
    listAudit: (page: PageOptions) => list<EventView>('/v1/audit', { ...page }),
    listTokens: (page: PageOptions) => list<TokenView>('/v1/tokens', { ...page }),
    createToken: (body: Partial<CreateToken>) => post<TokenView>('/v1/tokens', { body }),
    revokeToken: async (id: string): Promise<TokenView> => {
      const request: Call = { method: 'DELETE', repeatable: true };
      return (await call<TokenView>(options, `/v1/tokens/${encodeURIComponent(id)}`, request)).data;
    },
  };
}

function jobPath(id: string, rest = ''): string {
  return `/v1/jobs/${encodeURIComponent(id)}${rest}`;
}

function budgetPath(tenant: string, user: string): string {
  const whole = `/v1/budgets/${encodeURIComponent(tenant)}`;
  return user === '' ? whole : `${whole}/users/${encodeURIComponent(user)}`;
}

function dataPath(name: string): string {
  return `/v1/data/${encodeURIComponent(name)}`;
}

/** Walks the pages of a list. */
export async function* eachItem<Item>(
  page: (options: PageOptions) => Promise<ListPage<Item>>,
  limit?: number,
): AsyncGenerator<Item> {
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await page({ cursor, limit });
    yield* items;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
}

function keyed(body: unknown, key: string, signal: AbortSignal | undefined): Call {
  return { body, headers: { 'idempotency-key': key }, repeatable: true, signal };
}

/** What is there now, page by page. */
async function* readLogs(
  options: HttpOptions,
  path: string,
  query: LogOptions,
): AsyncGenerator<LogRecordView> {
  let after = 0;
  for (;;) {
    const request = { query: logParameters(query, after), signal: query.signal };
    const { data, meta } = await call<LogRecordView[]>(options, path, request);
    yield* data;
    const next = Number(meta['next'] ?? after);
    // An empty page that moved on held only what was not asked for.
    if (meta['complete'] === true || next <= after) return;
    after = next;
  }
}

/** Every record once and in order, over however many connections that takes, until the end. */
async function* followLogs(
  options: HttpOptions,
  path: string,
  query: LogOptions,
): AsyncGenerator<LogRecordView> {
  let after = 0;
  let failures = 0;
  let brokenAtMs = Number.POSITIVE_INFINITY;
  for (;;) {
    try {
      const response = await openStream(options, path, query, after);
      brokenAtMs = Number.POSITIVE_INFINITY;
      for await (const event of streamEvents(options, response, query.signal)) {
        failures = 0;
        if (event.event === 'end') return;
        if (event.event === 'problem') throw streamProblem(event.data);
        if (event.event !== 'log') continue;
        const record = JSON.parse(event.data) as LogRecordView;
        if (record.seq <= after) continue;
        after = record.seq;
        yield record;
      }
    } catch (error) {
      brokenAtMs = Math.min(brokenAtMs, performance.now());
      const late = performance.now() - brokenAtMs > FOLLOW_RETRY_WINDOW_MS;
      if (query.signal?.aborted || late || !mayPass(error)) throw error;
      await query.onReconnect?.(error);
    }
    await delay(retryPauseMs(failures++), undefined, { signal: query.signal });
  }
}

/** Too late for an HTTP status, so the stream carries it. */
function streamProblem(data: string): ApiError {
  const problem = JSON.parse(data) as Problem & { status?: number };
  return new ApiError(problem.status ?? 500, problem);
}

function openStream(
  options: HttpOptions,
  path: string,
  query: LogOptions,
  after: number,
): Promise<Response> {
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (after > 0) headers['last-event-id'] = String(after);
  // Where to go on is in Last-Event-ID; a tail would skip what was missed in between.
  const parameters = { ...logParameters(query, after), after: undefined, follow: true };
  return send(options, path, { headers, query: parameters, signal: query.signal });
}

async function* streamEvents(
  options: HttpOptions,
  response: Response,
  signal: AbortSignal | undefined,
): AsyncGenerator<SseEvent> {
  if (!response.body) return;
  try {
    yield* readEvents(response.body);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw asConnectionError(options, error, signal);
  }
}

function logParameters(query: LogOptions, after: number) {
  return {
    task: query.task,
    since: query.sinceMs,
    tail: after > 0 ? undefined : query.tail,
    after: after > 0 ? after : undefined,
  };
}
