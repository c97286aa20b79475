/** The TypeScript client: every REST call, typed, with safe retries and logs that resume. */
import type { BudgetInput, BudgetView, PlanView, UsageQuery, UsageRow } from './budgets.ts';
import type { CapsuleView } from './capsule.ts';
import type { CollectionView, DataInput, DataView } from './dataSets.ts';
import type { ClusterAnswer, CreateToken, TokenView, WorkerView } from './fleet.ts';
import { CALL_TIMEOUT_MS, call, send, type Call, type HttpOptions } from './http.ts';
import { followLogs, followMetrics, readLogs } from './follow.ts';
import type { FollowMetricOptions, LogOptions, MetricOptions } from './follow.ts';
import type {
  AttemptView,
  CheckpointView,
  EventView,
  JobView,
  QueueEntry,
  ResultView,
  TaskView,
} from './jobs.ts';
import type { Priority } from '../model/job.ts';
import type { SubmittedSpec } from './jobSpec.ts';
import type { MetricSeries } from './metrics.ts';
import type { PolicyView } from './policy.ts';
import { poolCalls } from './clientPools.ts';
import type { ReceiptView } from './receipt.ts';
import type { LeavingJobs, TenantInput, TenantView, UserInput, UserView } from './tenants.ts';
import type { WhyView } from './why.ts';

export type { LogOptions } from './follow.ts';
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

/** What is known at the moment of acceptance. */
export type SubmittedJob = Pick<JobView, 'id' | 'state'>;

/** Every blob and every manifest is looked at. */
const COLLECT_TIMEOUT_MS = 3_600_000;

/** Every sample is looked at. */
const METRICS_TIMEOUT_MS = 300_000;

export type DroverClient = ReturnType<typeof createClient>;

export function createClient(options: HttpOptions) {
  const get = async <Data>(path: string, query?: Call['query']): Promise<Data> =>
    (await call<Data>(options, path, query ? { query } : {})).data;
  const post = async <Data>(path: string, request: Call = {}): Promise<Data> =>
    (await call<Data>(options, path, { method: 'POST', ...request })).data;
  const put = async <Data>(path: string, request: Call): Promise<Data> =>
    (await call<Data>(options, path, { method: 'PUT', repeatable: true, ...request })).data;
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
    setPriority: (id: string, priority: Priority) =>
      post<JobView>(jobPath(id, '/priority'), { body: { priority }, repeatable: true }),
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
    /** Series of what is measured, by task and name. */
    metrics: async (id: string, query: MetricOptions = {}): Promise<MetricSeries[]> => {
      const request = { query: { ...query }, timeoutMs: METRICS_TIMEOUT_MS };
      return (await call<MetricSeries[]>(options, jobPath(id, '/metrics'), request)).data;
    },
    /** Every sample, as it comes, until the job has ended. */
    followMetrics: (id: string, query: FollowMetricOptions = {}) =>
      followMetrics(options, jobPath(id, '/metrics/stream'), query),
    /** Every sample there is now, as a file. */
    downloadMetrics: (id: string, format: 'csv' | 'jsonl', query: MetricOptions = {}) =>
      send(options, jobPath(id, '/metrics'), { query: { ...query, format } }),

    /** A link below the server's URL that opens what a task serves in a browser, once. */
    proxyLogin: async (endpoint: string, next: string): Promise<string> =>
      (await post<{ path: string }>('/v1/proxy/logins', { body: { endpoint, next } })).path,
    capsule: (id: string) => get<CapsuleView>(jobPath(id, '/capsule')),
    why: (id: string) => get<WhyView>(jobPath(id, '/why')),
    receipt: (id: string) => get<ReceiptView>(jobPath(id, '/receipt')),
    plan: (spec: SubmittedSpec) => post<PlanView>('/v1/plan', { body: spec, repeatable: true }),
    queue: (page: PageOptions) => list<QueueEntry>('/v1/queue', { ...page }),
    cluster: () => get<ClusterAnswer>('/v1/cluster'),
    listWorkers: (page: PageOptions) => list<WorkerView>('/v1/workers', { ...page }),
    setDraining: (id: string, draining: boolean) =>
      post<WorkerView>(`/v1/workers/${encodeURIComponent(id)}/${draining ? 'drain' : 'undrain'}`, {
        repeatable: true,
      }),
    revokeWorker: (id: string) =>
      post<WorkerView>(`/v1/workers/${encodeURIComponent(id)}/revoke`, { repeatable: true }),
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
    policy: () => get<PolicyView>('/v1/policy'),
    listAudit: (page: PageOptions) => list<EventView>('/v1/audit', { ...page }),
    ...poolCalls(options),
    listTenants: () => get<TenantView[]>('/v1/tenants'),
    setTenant: (name: string, body: Partial<TenantInput>) =>
      put<TenantView>(`/v1/tenants/${encodeURIComponent(name)}`, { body }),
    listUsers: () => get<UserView[]>('/v1/users'),
    setUser: (name: string, body: Partial<UserInput>) => put<UserView>(userPath(name), { body }),
    removeUser: async (name: string, jobs?: LeavingJobs): Promise<UserView> => {
      const request: Call = { method: 'DELETE', query: { jobs }, repeatable: true };
      return (await call<UserView>(options, userPath(name), request)).data;
    },
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

function userPath(name: string): string {
  return `/v1/users/${encodeURIComponent(name)}`;
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
