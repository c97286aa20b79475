/**
 * The Coordinator contract: what gateways, command line, SDKs and peers may ask of a controller.
 * In one process it is a plain call, across threads a message, across machines gRPC. Arguments and
 * results are plain data; failures are DroverError. A reply leaves only after what it says is on
 * disk.
 */
import type { SubmittedDownstream } from '../model/downstream.ts';
import type { JobSpec, Priority } from '../model/job.ts';
import type { Identity, Principal } from '../model/token.ts';
import type { BudgetInput, BudgetView, PlanView, UsageQuery, UsageRow } from './budgets.ts';
import type {
  AttemptAccess,
  AttemptSecrets,
  AttemptTokens,
  CheckpointReport,
  JoinReply,
  JoinRequest,
} from './agent.ts';
import type { LogAck, LogChunk, SyncReply, SyncRequest } from './agent.ts';
import type { ConnectorCalls } from './connector.ts';
import type { DataInput, DataView } from './dataSets.ts';
import type { ClusterView, CreateToken, TokenView, WorkerView } from './fleet.ts';
import type {
  AnyRecordView,
  AttemptView,
  CheckpointView,
  EventView,
  JobView,
  ListJobsQuery,
  PageQuery,
  QueueEntry,
  TaskPageQuery,
  TaskView,
} from './jobs.ts';
import type { PolicyView } from './policy.ts';
import type { PoolCalls } from './pools.ts';
import type { ReceiptView } from './receipt.ts';
import type { LeavingJobs, TenantInput, TenantView, UserInput, UserView } from './tenants.ts';
import type { WhyView } from './why.ts';

export interface Page<Item> {
  items: Item[];
  /** Pass as `cursor` for the next page; null at the end. */
  nextCursor: string | null;
}

export interface SubmitRequest {
  specs: JobSpec[];
  idempotencyKey: string | null;
  /** Hash of the request's body, compared when the key was used before. */
  bodyHash: string | null;
  /** For whom the jobs get tokens of other services: nobody but the caller. */
  downstream?: SubmittedDownstream | undefined;
  /** Such tokens by metadata, for a coordinator that wants them at once; kept by nobody. */
  downstreamTokens?: Record<string, string> | undefined;
}

export interface SubmitReply {
  ids: string[];
  /** True when the key was known and nothing new was created. */
  replayed: boolean;
}

export interface LogQuery {
  /** Only records with a higher seq. */
  after: number;
  /** Only this task index. */
  task?: number;
  sinceMs?: number;
  /** Start so that at most this many lines come before the end. Only with `after` 0. */
  tailLines?: number;
  /** When there is nothing after `after` and more may come, wait up to this long. */
  waitMs: number;
  /** What is measured of the job instead of its output; its seqs are their own. */
  metrics?: boolean;
}

export interface LogPage {
  records: AnyRecordView[];
  /** Pass as `after` to go on. */
  next: number;
  /**
   * Nothing will ever come after `next`: all attempts ended and their last byte is in `records` or
   * before.
   */
  complete: boolean;
}

/**
 * What a coordinator elsewhere can do besides: pages as they come, in one call, read no faster than
 * they are taken. The first comes at once. It ends at the job's end, or is broken off.
 */
export interface LogFollower {
  followLogs(
    who: Principal,
    job: string,
    query: LogQuery,
    signal: AbortSignal,
  ): AsyncIterable<LogPage>;
}

export interface TunnelTicket {
  /** What the gateway waits for on its tunnel listener. */
  ticketHash: string;
  worker: string;
  attempt: string;
}

/** A look into a running task. */
export interface AccessRecord {
  /** exec, tcp, unix, ssh, ps, profile. */
  how: string;
  attempt: string;
  /** The port, the socket, the process: whatever the kind has. */
  details: Record<string, string | number | boolean | null>;
}

export interface LoopHealth {
  name: string;
  periodMs: number;
  lastStartedAtMs: number | null;
  lastFinishedAtMs: number | null;
  failures: number;
  lastError: string | null;
  healthy: boolean;
}

export interface Readiness {
  ready: boolean;
  reasons: string[];
  loops: LoopHealth[];
}

export interface Coordinator extends PoolCalls, ConnectorCalls {
  /** Undefined when the token is unknown, expired or revoked. Gateways cache it for at most 5 s. */
  authenticate(secret: string): Promise<Principal | undefined>;

  /** The same for somebody whom an issuer vouches for; undefined when he may not come in. */
  admit(identity: Identity): Promise<Principal | undefined>;

  submit(who: Principal, request: SubmitRequest): Promise<SubmitReply>;
  getJob(who: Principal, id: string): Promise<JobView>;
  listJobs(who: Principal, query: ListJobsQuery): Promise<Page<JobView>>;
  cancelJob(who: Principal, id: string): Promise<JobView>;
  /** Moves it to another band: what waits is planned anew, what runs goes on. */
  setPriority(who: Principal, id: string, priority: Priority): Promise<JobView>;
  listTasks(who: Principal, job: string, page: PageQuery): Promise<Page<TaskView>>;
  listAttempts(who: Principal, job: string, page: TaskPageQuery): Promise<Page<AttemptView>>;
  listEvents(who: Principal, job: string, page: PageQuery): Promise<Page<EventView>>;
  /** What its tasks can resume from, by task, oldest first. */
  listCheckpoints(who: Principal, job: string, page: TaskPageQuery): Promise<Page<CheckpointView>>;
  /** Asks what runs of it, or of one task, for a checkpoint now; the ids of those tasks. */
  requestCheckpoint(who: Principal, job: string, task?: number): Promise<string[]>;
  /** Returns when the job has ended or after `waitMs`, whichever is first. */
  waitJob(who: Principal, id: string, waitMs: number): Promise<JobView>;
  readLogs(who: Principal, job: string, query: LogQuery): Promise<LogPage>;
  queue(who: Principal, page: PageQuery): Promise<Page<QueueEntry>>;
  /** Why a job waits, from what the planner knew when it last passed it over. */
  why(who: Principal, job: string): Promise<WhyView>;
  /** Where a job ran, what it cost, what was lost by whose fault, and what to do next. */
  receipt(who: Principal, job: string): Promise<ReceiptView>;
  /** Where a job would go, when, and what it would cost; nothing is written. */
  plan(who: Principal, spec: JobSpec): Promise<PlanView>;

  /** The caller's tenant's; with the scope tenants:manage everybody's. */
  listBudgets(who: Principal): Promise<BudgetView[]>;
  /** Makes or replaces it; STALE when it is not at the version named. */
  setBudget(who: Principal, budget: BudgetInput): Promise<BudgetView>;
  deleteBudget(who: Principal, tenant: string, user: string): Promise<void>;
  /** By the caller's tenant; with the scope tenants:manage by everybody. */
  usage(who: Principal, query: UsageQuery): Promise<UsageRow[]>;

  /** Who looked into what and changed what, the newest first; of the caller's tenant. */
  listAudit(who: Principal, page: PageQuery): Promise<Page<EventView>>;
  /** Kept before anything of a running task is shown to the caller. */
  recordAccess(who: Principal, access: AccessRecord): Promise<void>;

  /** The caller's tenant's, by name. */
  listData(who: Principal): Promise<DataView[]>;
  /** The name means these bytes from now on, to jobs that are submitted later. */
  putData(who: Principal, data: DataInput): Promise<DataView>;
  /** The bytes stay while a job names them. */
  removeData(who: Principal, name: string): Promise<void>;
  /**
   * Every blob:HASH and tree:HASH that the tenant's jobs, results, checkpoints and data sets name;
   * some twice. Null begins.
   */
  namedBlobs(who: Principal, cursor: string | null): Promise<Page<string>>;

  /** The site's rules and defaults, as its operator wrote them. */
  policy(who: Principal): Promise<PolicyView>;

  cluster(who: Principal): Promise<ClusterView>;
  listWorkers(who: Principal, page: PageQuery): Promise<Page<WorkerView>>;
  setDraining(who: Principal, worker: string, draining: boolean): Promise<WorkerView>;
  /** Its token is good no more; what it runs is lost when its lease has run out. */
  revokeWorker(who: Principal, worker: string): Promise<WorkerView>;
  listTokens(who: Principal, page: PageQuery): Promise<Page<TokenView>>;
  createToken(who: Principal, request: CreateToken): Promise<TokenView>;
  revokeToken(who: Principal, id: string): Promise<TokenView>;

  /** The caller's own; with the scope tenants:manage all. */
  listTenants(who: Principal): Promise<TenantView[]>;
  setTenant(who: Principal, name: string, input: TenantInput): Promise<TenantView>;
  /** Of the caller's tenant: who has a token, a live job, or was said something about. */
  listUsers(who: Principal): Promise<UserView[]>;
  setUser(who: Principal, user: string, input: UserInput): Promise<UserView>;
  /** He leaves: his tokens end, and his jobs if that is asked for or else the policy says so. */
  removeUser(who: Principal, user: string, jobs: LeavingJobs | undefined): Promise<UserView>;

  join(joinToken: string, request: JoinRequest): Promise<JoinReply>;
  sync(workerToken: string, request: SyncRequest): Promise<SyncReply>;
  appendLogs(workerToken: string, chunks: LogChunk[]): Promise<LogAck[]>;
  /** STALE when the attempt is not the worker's to run any more. */
  addCheckpoint(workerToken: string, report: CheckpointReport): Promise<void>;
  /** Undefined when the worker does not run it. */
  attemptAccess(workerToken: string, uid: string): Promise<AttemptAccess | undefined>;

  /** STALE when the worker does not run it, NOT_FOUND for a secret that nobody knows. */
  attemptSecrets(workerToken: string, uid: string): Promise<AttemptSecrets>;
  /**
   * Minted now. STALE when the worker does not run it; before its start PERMISSION_DENIED where one
   * that it must have is refused, UNAVAILABLE where that cannot be had.
   */
  attemptTokens(workerToken: string, uid: string): Promise<AttemptTokens>;

  /** A gateway says where agents reach its tunnel; the lease must be renewed. */
  registerGateway(url: string, leaseMs: number): Promise<void>;
  /** Asks the worker that runs this task's live attempt to dial `gatewayUrl`. */
  openTunnel(who: Principal, task: string, gatewayUrl: string): Promise<TunnelTicket>;

  readiness(): Promise<Readiness>;
  /** Prometheus text. */
  metrics(): Promise<string>;
}

/** Every call, for those who pass them on. */
export const COORDINATOR_CALLS = [
  'authenticate',
  'admit',
  'submit',
  'getJob',
  'listJobs',
  'cancelJob',
  'setPriority',
  'listTasks',
  'listAttempts',
  'listEvents',
  'listCheckpoints',
  'requestCheckpoint',
  'waitJob',
  'readLogs',
  'queue',
  'why',
  'receipt',
  'plan',
  'listBudgets',
  'setBudget',
  'deleteBudget',
  'usage',
  'listAudit',
  'recordAccess',
  'listData',
  'putData',
  'removeData',
  'namedBlobs',
  'policy',
  'cluster',
  'listWorkers',
  'setDraining',
  'revokeWorker',
  'listPools',
  'lookAtPool',
  'listInstances',
  'getInstance',
  'destroyInstance',
  'listHosts',
  'setHost',
  'listTokens',
  'createToken',
  'revokeToken',
  'listTenants',
  'setTenant',
  'listUsers',
  'setUser',
  'removeUser',
  'join',
  'sync',
  'appendLogs',
  'addCheckpoint',
  'attemptAccess',
  'attemptSecrets',
  'attemptTokens',
  'exchangeCommands',
  'registerGateway',
  'openTunnel',
  'readiness',
  'metrics',
] as const satisfies readonly (keyof Coordinator)[];
