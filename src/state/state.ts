/**
 * The live state: everything that has not ended, in memory, changed only by mutations (see
 * apply.ts). It knows nothing of SQL or time; it remembers what changed so that others can write
 * and plan.
 */
import type { PoolPolicy } from '../core/placement/admission.ts';
import { Capacity } from '../core/placement/capacity.ts';
import { DEFAULT_HALF_LIFE_MS } from '../core/usage.ts';
import { countTasks } from '../core/lifecycle/job.ts';
import { moveTask, type TASK_MOVES } from '../core/lifecycle/task.ts';
import type { Attempt } from '../model/attempt.ts';
import type { Claim } from '../model/claim.ts';
import type { JobDownstream } from '../model/downstream.ts';
import { idMinter, type AttemptUid, type ClusterId, type JobId } from '../model/ids.ts';
import type { TaskId, TokenId, WorkerId } from '../model/ids.ts';
import { AUDITED } from '../model/event.ts';
import type { Job } from '../model/job.ts';
import type { Task } from '../model/task.ts';
import type { Token } from '../model/token.ts';
import type { Worker } from '../model/worker.ts';
import { Accounts } from './accounts.ts';
import { waitForOthers } from './after.ts';
import { Changes, eventOf, mark, type EventNote } from './changes.ts';
import { Checkpoints } from './checkpoints.ts';
import { DataSets } from './dataSets.ts';
import { Deltas } from './deltas.ts';
import { Family } from './family.ts';
import { idempotencyKey, LiveAttempts, taskAt } from './live.ts';
import type { IdempotencyEntry, KeyedSubmission, LiveJob, LiveWorker } from './live.ts';
import type { Nomination, Snapshot } from './live.ts';
import { adoptNomination, dropNomination, release, setAside, take } from './holdings.ts';
import { Machines } from './machines.ts';
import { Notices, type TellDefaults } from './notices.ts';
import { classKeyOf } from './requests.ts';
import { AuditChains } from './auditChains.ts';
import { Tenants } from './tenants.ts';
import { adoptToken } from './tokens.ts';
import { UsageDays } from './usageDays.ts';
import { completeTasks, UNTOUCHED } from './tasks.ts';

export interface StateOptions {
  pools?: readonly PoolPolicy[];
  halfLifeMs?: number;
  /** Whom jobs that name nobody tell. */
  tell?: TellDefaults;
}

export class State {
  readonly clusterId: ClusterId;
  readonly epoch: number;
  readonly jobs = new Map<JobId, LiveJob>();
  readonly attempts = new Map<AttemptUid, Attempt>();
  readonly workers = new Map<WorkerId, LiveWorker>();
  readonly workersByToken = new Map<string, LiveWorker>();
  readonly workersByMachine = new Map<string, LiveWorker>();
  readonly claims = new Map<AttemptUid, Claim>();
  readonly tokens = new Map<TokenId, Token>();
  readonly tokensByHash = new Map<string, Token>();
  /** Of running jobs that may submit others. */
  readonly attemptTokens = new Map<AttemptUid, Token[]>();
  /** Pools that a join token was made for. */
  readonly pools = new Set<string>();
  /** Pools as configured. */
  readonly poolPolicies = new Map<string, PoolPolicy>();
  readonly idempotency = new Map<string, IdempotencyEntry>();
  readonly accounts: Accounts;
  readonly usageDays: UsageDays;
  readonly checkpoints: Checkpoints;
  readonly dataSets: DataSets;
  /** For whom attempts get tokens of other services. */
  readonly downstream: Map<JobId, JobDownstream>;
  readonly notices: Notices;
  readonly machines: Machines;
  readonly tenants: Tenants;
  readonly auditChains: AuditChains;
  readonly family = new Family();
  readonly nominations = new Map<TaskId, Nomination>();
  /** Who waits for a job to end. */
  readonly dependents = new Map<JobId, Set<LiveJob>>();
  /** Past use weighs half after this time. */
  readonly halfLifeMs: number;
  readonly mint: (prefix: string) => string;
  /** Jobs with a limit on running or waiting, so that nobody need look through the others. */
  readonly timed = new Set<LiveJob>();
  readonly costLimited = new Set<LiveJob>();
  readonly deltas = new Deltas();
  /** Workers whose next sync would say something new. */
  readonly wake = new Set<WorkerId>();
  changes = new Changes();
  #seq: number;

  constructor(snapshot: Snapshot, options: StateOptions = {}) {
    for (const pool of options.pools ?? []) this.poolPolicies.set(pool.name, pool);
    this.halfLifeMs = options.halfLifeMs ?? DEFAULT_HALF_LIFE_MS;
    this.accounts = new Accounts(snapshot.accounts, snapshot.budgets);
    this.usageDays = new UsageDays(snapshot.usageDays);
    this.checkpoints = new Checkpoints(snapshot.checkpoints);
    this.notices = new Notices(snapshot.notices, options.tell ?? {});
    this.dataSets = new DataSets(snapshot.dataSets);
    this.downstream = new Map(snapshot.downstream.map((one) => [one.job, one]));
    this.tenants = new Tenants(snapshot.tenants, snapshot.users);
    this.auditChains = new AuditChains(snapshot.auditHeads);
    this.clusterId = snapshot.clusterId;
    this.epoch = snapshot.epoch;
    this.#seq = snapshot.seq;
    this.mint = idMinter(snapshot.clusterId, snapshot.epoch);
    for (const job of snapshot.jobs) this.#adoptJob(job, []);
    for (const task of snapshot.tasks) this.jobs.get(task.job)?.tasks.push(task);
    for (const live of this.jobs.values()) {
      live.tasks = completeTasks(live.job, live.tasks);
      live.counts = countTasks(live.tasks);
      for (const task of live.tasks) this.deltas.tasks.add(task);
    }
    this.machines = new Machines(snapshot);
    for (const worker of snapshot.workers) this.machines.link(this.addWorker(worker));
    for (const claim of snapshot.claims) take(this, claim);
    for (const attempt of snapshot.attempts) {
      this.#adoptAttempt(attempt);
      const claim = this.claims.get(attempt.uid);
      if (claim) setAside(this, attempt.job, claim, attempt.priceMicros, 1);
    }
    for (const claim of snapshot.claims) adoptNomination(this, claim);
    for (const live of this.jobs.values()) waitForOthers(this, live, 0);
    for (const account of this.accounts.all()) this.deltas.accounts.add(account);
    for (const token of snapshot.tokens) adoptToken(this, token);
    for (const { tenant, key, entry } of snapshot.idempotency) {
      this.idempotency.set(idempotencyKey(tenant, key), entry);
    }
  }

  /** Everything that changed since the last call, to be written as one batch. */
  takeChanges(): Changes {
    const taken = this.changes;
    this.changes = new Changes();
    return taken;
  }

  get seq(): number {
    return this.#seq;
  }

  note(nowMs: number, event: EventNote): void {
    const entry = eventOf(event, this.epoch, ++this.#seq, nowMs);
    if (event.audited !== false && AUDITED.has(event.kind)) {
      this.auditChains.append(entry, this.changes.auditHeads);
    }
    this.changes.events.push(entry);
  }

  addJob(job: Job, tasks: Task[]): LiveJob {
    const live = this.#adoptJob(job, tasks);
    this.changes.jobs.set(job, 'insert');
    for (const task of tasks) this.deltas.tasks.add(task);
    return live;
  }

  addKey(submission: KeyedSubmission): void {
    this.idempotency.set(idempotencyKey(submission.tenant, submission.key), submission.entry);
    this.changes.submissions.push(submission);
  }

  task(id: TaskId): { live: LiveJob; task: Task } | undefined {
    const dot = id.lastIndexOf('.');
    const live = this.jobs.get(id.slice(0, dot) as JobId);
    if (!live) return undefined;
    const task = taskAt(live.tasks, Number(id.slice(dot + 1)));
    return task && { live, task };
  }

  /** The one place where a task's state changes. */
  moveTask(live: LiveJob, task: Task, move: keyof typeof TASK_MOVES, reason: string): void {
    const to = moveTask(move, task.state);
    live.counts[task.state]--;
    live.counts[to]++;
    task.state = to;
    task.reason = reason;
    this.touchTask(task);
  }

  touchJob(job: Job): void {
    job.version++;
    mark(this.changes.jobs, job);
  }

  /** A nomination is for the task as it was: whatever happens to it ends that. */
  touchTask(task: Task): void {
    if (this.nominations.has(task.id)) dropNomination(this, task.id);
    if (task.version === UNTOUCHED) this.changes.tasks.set(task, 'insert');
    else mark(this.changes.tasks, task);
    task.version++;
    this.deltas.tasks.add(task);
  }

  touchAttempt(attempt: Attempt): void {
    attempt.version++;
    mark(this.changes.attempts, attempt);
  }

  touchWorker(worker: Worker): void {
    worker.version++;
    mark(this.changes.workers, worker);
    this.deltas.workers.add(worker.id);
  }

  addAttempt(attempt: Attempt, claim: Claim): void {
    this.changes.attempts.set(attempt, 'insert');
    // One that was nominated is held already.
    if (this.claims.get(claim.owner) === claim) this.touchClaim(claim);
    else {
      this.changes.claims.set(claim, 'insert');
      take(this, claim);
    }
    this.#adoptAttempt(attempt);
    setAside(this, attempt.job, claim, attempt.priceMicros, 1);
  }

  /** Frees the claim and drops the attempt from the live maps; its row has been touched before. */
  dropAttempt(attempt: Attempt): void {
    this.attempts.delete(attempt.uid);
    const live = this.jobs.get(attempt.job);
    const task = this.task(attempt.task)?.task;
    if (live && task && live.attempts.get(task.index) === attempt) live.attempts.delete(task.index);
    this.workers.get(attempt.worker)?.attempts.delete(attempt.uid);
    this.wake.add(attempt.worker);
    const claim = this.claims.get(attempt.uid);
    if (!claim) return;
    setAside(this, attempt.job, claim, attempt.priceMicros, -1);
    release(this, claim);
  }

  touchClaim(claim: Claim): void {
    if (!this.changes.claims.has(claim)) this.changes.claims.set(claim, 'update');
    this.deltas.claims.add(claim.owner);
  }

  addWorker(worker: Worker): LiveWorker {
    const live: LiveWorker = {
      worker,
      capacity: new Capacity(worker.resources),
      attempts: new Map(),
    };
    this.workers.set(worker.id, live);
    if (worker.tokenHash !== '') this.workersByToken.set(worker.tokenHash, live);
    this.workersByMachine.set(worker.machine, live);
    this.deltas.workers.add(worker.id);
    return live;
  }

  dropWorker(live: LiveWorker): void {
    this.workers.delete(live.worker.id);
    this.workersByToken.delete(live.worker.tokenHash);
    this.workersByMachine.delete(live.worker.machine);
    this.deltas.workers.add(live.worker.id);
    this.wake.add(live.worker.id);
  }

  /** After their end was committed nobody needs ended jobs in memory. */
  evict(changes: Changes): void {
    for (const job of changes.endings.keys()) {
      const live = this.jobs.get(job.id);
      if (!live || live.attempts.size > 0) continue;
      this.jobs.delete(job.id);
      this.timed.delete(live);
      this.family.remove(live);
      this.costLimited.delete(live);
      this.notices.started.delete(job.id);
      if (job.spec.checkpoint) this.checkpoints.forget(live);
    }
  }

  #adoptJob(job: Job, tasks: Task[]): LiveJob {
    const live: LiveJob = {
      job,
      tasks,
      counts: countTasks(tasks),
      classKey: classKeyOf(job),
      attempts: new LiveAttempts(),
      waitsFor: null,
      master: null,
    };
    this.jobs.set(job.id, live);
    this.family.add(live);
    if (job.spec.timeLimitMs > 0 || job.spec.startWithinMs > 0) this.timed.add(live);
    if (job.spec.maxCostMicros > 0) this.costLimited.add(live);
    return live;
  }

  #adoptAttempt(attempt: Attempt): void {
    this.attempts.set(attempt.uid, attempt);
    const found = this.task(attempt.task);
    found?.live.attempts.set(found.task.index, attempt);
    const worker = this.workers.get(attempt.worker)?.worker;
    const port = this.claims.get(attempt.uid)?.ports[0];
    if (found?.task.index === 0 && worker && port !== undefined) {
      found.live.master = { address: worker.address, port };
    }
    this.workers.get(attempt.worker)?.attempts.set(attempt.uid, attempt);
    this.wake.add(attempt.worker);
  }
}
