/** A Coordinator in memory, for the tests of what stands in front of one. Places at first sync. */
import { hash } from 'node:crypto';
import { systemClock, type Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import { systemRandom, type Random } from '../lib/random.ts';
import type { TokenId } from '../model/ids.ts';
import type { Priority } from '../model/job.ts';
import { SCOPES, type Principal } from '../model/token.ts';
import type * as agent from './agent.ts';
import type { Coordinator, LogPage, LogQuery, Page, Readiness } from './coordinator.ts';
import type { SubmitReply, SubmitRequest, TunnelTicket } from './coordinator.ts';
import { allow, pageOf, pollUntil } from './fakeAnswers.ts';
import { FakeFleet } from './fakeFleet.ts';
import { isEnded, jobView, newJob, withPriority, type FakeJob } from './fakeJobs.ts';
import { FakeRest } from './fakeRest.ts';
import { fakeWhy } from './fakeWhy.ts';
import { FakeWork } from './fakeWork.ts';
import type { ClusterView, CreateToken, TokenView, WorkerView } from './fleet.ts';
import type { AttemptView, EventView, JobView, ListJobsQuery, PageQuery } from './jobs.ts';
import type { LogRecordView, QueueEntry, TaskView } from './jobs.ts';
import { fakeReceipt } from './fakeReceipt.ts';
import type { ReceiptView } from './receipt.ts';
import type { WhyView } from './why.ts';

export class FakeCoordinator extends FakeRest implements Coordinator {
  readonly adminSecret: string;
  readonly joinSecret: string;
  /** What `readiness` says; tests change it. */
  ready: Readiness = { ready: true, reasons: [], loops: [] };
  readonly gateways = new Map<string, number>();
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #fleet: FakeFleet;
  readonly #work: FakeWork;
  readonly #keys = new Map<string, { bodyHash: string | null; ids: string[] }>();
  readonly #until = (waitMs: number, done: () => boolean): Promise<void> =>
    pollUntil(this.#clock, waitMs, done);
  #counter = 0;
  #generation = 0;

  constructor(options: { clock?: Clock; random?: Random } = {}) {
    super();
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#fleet = new FakeFleet(this.#clock, this.#random);
    this.#work = new FakeWork(this.#clock, this.#random);
    const admin = { user: 'admin', scopes: [...SCOPES] };
    this.adminSecret = this.#fleet.addToken('main', 'admin', 'user', admin).secret;
    this.joinSecret = this.#fleet.addToken('main', 'admin', 'join', {}).secret;
  }

  async authenticate(secret: string): Promise<Principal | undefined> {
    const token = this.#fleet.tokenBySecret(secret, 'user');
    if (!token) return undefined;
    const { tenant, user, scopes } = token.view;
    return { token: token.view.id as TokenId, tenant, user, scopes };
  }

  async submit(who: Principal, request: SubmitRequest): Promise<SubmitReply> {
    allow(who, 'jobs:manage');
    const key = request.idempotencyKey;
    const known = key === null ? undefined : this.#keys.get(`${who.tenant}/${key}`);
    if (known && known.bodyHash !== request.bodyHash) {
      throw new DroverError('IDEMPOTENCY_MISMATCH', `the key ${key} came with another body`, {
        hint: 'Use a new key for a new request.',
      });
    }
    if (known) return { ids: known.ids, replayed: true };
    const ids = request.specs.map((spec) => {
      const id = this.#mint('j');
      const job = newJob(id, who, spec, this.#clock.now());
      this.#work.jobs.set(id, job);
      this.#work.event(job, 'job.submitted', null, { user: who.user });
      return id;
    });
    if (key !== null) {
      this.#keys.set(`${who.tenant}/${key}`, { bodyHash: request.bodyHash, ids });
    }
    return { ids, replayed: false };
  }

  async getJob(who: Principal, id: string): Promise<JobView> {
    return jobView(this.#job(who, id), true);
  }

  async listJobs(who: Principal, query: ListJobsQuery): Promise<Page<JobView>> {
    allow(who, 'jobs:read');
    const views = [...this.#work.jobs.values()]
      .filter((job) => job.by.tenant === who.tenant)
      .map((job) => jobView(job, false))
      .filter((job) => query.state === undefined || job.state === query.state)
      .filter((job) => query.name === undefined || job.name === query.name)
      .filter((job) => query.owner === undefined || job.owner === query.owner);
    return pageOf(views.toReversed(), query);
  }

  async cancelJob(who: Principal, id: string): Promise<JobView> {
    allow(who, 'jobs:manage');
    const job = this.#job(who, id);
    if (job.cancelRequestedAtMs === null && !job.tasks.every(isEnded)) {
      job.cancelRequestedAtMs = this.#clock.now();
      this.#work.event(job, 'job.cancel-requested', null, { user: who.user });
      for (const task of job.tasks) {
        if (task.view.state === 'PENDING')
          this.#work.end(job, task, 'CANCELLED', 'cancelled', null);
      }
    }
    return jobView(job, true);
  }

  async setPriority(who: Principal, id: string, priority: Priority): Promise<JobView> {
    allow(who, 'jobs:manage');
    return jobView(withPriority(this.#job(who, id), priority), true);
  }

  async listTasks(who: Principal, job: string, page: PageQuery): Promise<Page<TaskView>> {
    return pageOf(
      this.#job(who, job).tasks.map(({ view }) => ({ ...view })),
      page,
    );
  }

  async listAttempts(who: Principal, job: string, page: PageQuery): Promise<Page<AttemptView>> {
    const attempts = this.#job(who, job).tasks.flatMap((task) => task.attempts);
    return pageOf(
      attempts.map((attempt) => ({ ...attempt })),
      page,
    );
  }

  async listEvents(who: Principal, job: string, page: PageQuery): Promise<Page<EventView>> {
    return pageOf(this.#job(who, job).events, page);
  }

  async waitJob(who: Principal, id: string, waitMs: number): Promise<JobView> {
    const job = this.#job(who, id);
    await this.#until(waitMs, () => job.tasks.every(isEnded));
    return jobView(job, true);
  }

  async readLogs(who: Principal, id: string, query: LogQuery): Promise<LogPage> {
    const job = this.#job(who, id);
    const found = (): LogRecordView[] =>
      job.logs.filter(
        (record) =>
          record.seq > query.after &&
          (query.task === undefined || record.index === query.task) &&
          (query.sinceMs === undefined || record.atMs >= query.sinceMs),
      );
    await this.#until(query.waitMs, () => found().length > 0 || job.tasks.every(isEnded));
    const all = found();
    const records = query.tailLines === undefined ? all : all.slice(-query.tailLines || Infinity);
    const next = all.at(-1)?.seq ?? query.after;
    return { records, next, complete: job.tasks.every(isEnded) };
  }

  async queue(who: Principal, page: PageQuery): Promise<Page<QueueEntry>> {
    allow(who, 'jobs:read');
    const entries = this.#waiting(who).map((job, index) => ({
      job: job.id,
      name: job.name,
      owner: job.owner,
      priority: job.priority,
      position: index + 1,
      pendingTasks: job.tasks.pending,
      createdAtMs: job.createdAtMs,
      reason: job.reason,
    }));
    return pageOf(entries, page);
  }

  async why(who: Principal, id: string): Promise<WhyView> {
    const job = jobView(this.#job(who, id), false);
    return fakeWhy(
      job,
      this.#waiting(who).filter((other) => other.id < id),
    );
  }

  async receipt(who: Principal, id: string): Promise<ReceiptView> {
    return fakeReceipt(jobView(this.#job(who, id), false));
  }

  async cluster(who: Principal): Promise<ClusterView> {
    allow(who, 'fleet:read');
    const states = [...this.#work.jobs.values()].flatMap((job) =>
      job.tasks.map(({ view }) => view.state),
    );
    const count = (state: string): number => states.filter((each) => each === state).length;
    return this.#fleet.cluster({
      pending: count('PENDING'),
      assigned: count('ASSIGNED'),
      running: count('RUNNING'),
    });
  }

  async listWorkers(who: Principal, page: PageQuery): Promise<Page<WorkerView>> {
    allow(who, 'fleet:read');
    return pageOf([...this.#fleet.workers.values()].map(copyOf), page);
  }

  async setDraining(who: Principal, worker: string, draining: boolean): Promise<WorkerView> {
    allow(who, 'fleet:manage');
    return this.#fleet.setDraining(worker, draining);
  }

  async revokeWorker(who: Principal, worker: string): Promise<WorkerView> {
    return this.setDraining(who, worker, true);
  }

  async listTokens(who: Principal, page: PageQuery): Promise<Page<TokenView>> {
    allow(who, 'tokens:manage');
    return pageOf(this.#fleet.tokens.map(copyOf), page);
  }

  async createToken(who: Principal, request: CreateToken): Promise<TokenView> {
    allow(who, 'tokens:manage');
    const { secret, view } = this.#fleet.addToken(who.tenant, who.user, request.kind, request);
    return { ...view, secret };
  }

  async revokeToken(who: Principal, id: string): Promise<TokenView> {
    allow(who, 'tokens:manage');
    const token = this.#fleet.tokens.find(({ view }) => view.id === id);
    if (!token) throw new DroverError('NOT_FOUND', `there is no token ${id}`);
    token.view.revokedAtMs ??= this.#clock.now();
    return { ...token.view };
  }

  async join(joinToken: string, request: agent.JoinRequest): Promise<agent.JoinReply> {
    return this.#fleet.join(joinToken, request);
  }

  async sync(workerToken: string, request: agent.SyncRequest): Promise<agent.SyncReply> {
    const worker = this.#fleet.workerByToken(workerToken);
    for (const seen of request.observed) this.#work.observe(seen);
    const observed = new Set(request.observed.map(({ uid }) => uid));
    const reply = this.#fleet.emptyReply(++this.#generation);
    await this.#until(request.wait ? reply.timers.longPollMs : 0, () => {
      this.#work.fill(reply, worker.view, observed);
      reply.tunnels = worker.tunnels.splice(0);
      const { desired, stop, acknowledged, tunnels } = reply;
      return desired.length + stop.length + acknowledged.length + tunnels.length > 0;
    });
    return reply;
  }

  async appendLogs(workerToken: string, chunks: agent.LogChunk[]): Promise<agent.LogAck[]> {
    this.#fleet.workerByToken(workerToken);
    return chunks.map((chunk) => this.#work.append(chunk));
  }

  async registerGateway(url: string, leaseMs: number): Promise<void> {
    this.gateways.set(url, this.#clock.now() + leaseMs);
  }

  async openTunnel(who: Principal, id: string, gatewayUrl: string): Promise<TunnelTicket> {
    allow(who, 'jobs:manage');
    const task = this.#job(who, id.slice(0, id.lastIndexOf('.'))).tasks.find(
      ({ view }) => view.id === id,
    );
    const attempt = task?.attempts.find(({ state }) => state !== 'ENDED');
    if (!attempt) throw new DroverError('CONFLICT', `the task ${id} does not run`);
    const ticket = this.#random.hex(16);
    this.#fleet.workers.get(attempt.worker)?.tunnels.push({ gatewayUrl, ticket });
    const ticketHash = hash('sha256', ticket);
    return { ticketHash, worker: attempt.worker, attempt: attempt.uid };
  }

  async readiness(): Promise<Readiness> {
    return this.ready;
  }

  async metrics(): Promise<string> {
    return `# TYPE drover_jobs gauge\ndrover_jobs ${this.#work.jobs.size}\n`;
  }

  #waiting(who: Principal): JobView[] {
    return [...this.#work.jobs.values()]
      .map((job) => jobView(job, false))
      .filter((job) => job.tenant === who.tenant && job.tasks.pending > 0);
  }

  #mint(prefix: string): string {
    return prefix + String(++this.#counter).padStart(8, '0');
  }

  #job(who: Principal, id: string): FakeJob {
    allow(who, 'jobs:read');
    const job = this.#work.jobs.get(id);
    if (job && job.by.tenant === who.tenant) return job;
    throw new DroverError('NOT_FOUND', `there is no job ${id}`, {
      hint: 'drover jobs lists them.',
    });
  }
}

function copyOf<View extends object>({ view }: { view: View }): View {
  return { ...view };
}
