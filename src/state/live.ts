/**
 * What lives in memory: a job with its tasks, a worker with its capacity, and how to look into
 * them.
 */
import { jobState, type TaskCounts } from '../core/lifecycle/job.ts';
import { taskEnded } from '../core/lifecycle/task.ts';
import type { Capacity } from '../core/placement/capacity.ts';
import type { Attempt } from '../model/attempt.ts';
import type { Account } from '../model/account.ts';
import type { Budget } from '../model/budget.ts';
import type { Checkpoint } from '../model/checkpoint.ts';
import type { DataSet } from '../model/dataSet.ts';
import type { Host } from '../model/host.ts';
import type { Instance } from '../model/instance.ts';
import type { PoolSpending } from '../model/poolSpending.ts';
import type { JobDownstream } from '../model/downstream.ts';
import type { Claim } from '../model/claim.ts';
import type { AttemptUid, ClusterId, JobId, WorkerId } from '../model/ids.ts';
import type { Job } from '../model/job.ts';
import type { QueuedNotice } from '../model/notice.ts';
import type { AuditHead } from '../model/auditChain.ts';
import type { Task } from '../model/task.ts';
import type { Tenant, User } from '../model/tenant.ts';
import type { Token } from '../model/token.ts';
import type { UsageDay } from '../model/usageDay.ts';
import type { Worker } from '../model/worker.ts';
import type { JobEnding } from './changes.ts';

export interface LiveJob {
  job: Job;
  /** In order of index. */
  tasks: Task[];
  counts: TaskCounts;
  /** Tasks with the same key ask for the same and are interchangeable to the planner. */
  classKey: string;
  /** The current attempt of each task by index, while it lives. */
  attempts: LiveAttempts;
  /** Jobs that must end before this one may start; null: none. */
  waitsFor: Set<JobId> | null;
  /** Gangs: where rank 0 of the newest round listens, known from its claim. */
  master: { address: string; port: number } | null;
}

/** A map that costs nothing while it is empty, as it is for everything that waits. */
export class LiveAttempts {
  #byIndex: Map<number, Attempt> | null = null;

  get size(): number {
    return this.#byIndex?.size ?? 0;
  }

  get(index: number): Attempt | undefined {
    return this.#byIndex?.get(index);
  }

  has(index: number): boolean {
    return this.#byIndex?.has(index) ?? false;
  }

  values(): Iterable<Attempt> {
    return this.#byIndex?.values() ?? [];
  }

  set(index: number, attempt: Attempt): void {
    this.#byIndex ??= new Map();
    this.#byIndex.set(index, attempt);
  }

  delete(index: number): void {
    this.#byIndex?.delete(index);
    if (this.#byIndex?.size === 0) this.#byIndex = null;
  }
}

/** A claim on what others are leaving, for a task that still waits. */
export interface Nomination {
  claim: Claim;
  /** What an hour of it will cost, as of the nomination. */
  priceMicros: number;
  live: LiveJob;
  task: Task;
}

export interface LiveWorker {
  worker: Worker;
  capacity: Capacity;
  attempts: Map<AttemptUid, Attempt>;
}

export interface LiveInstance {
  instance: Instance;
  /** That have joined for it and are not lost. */
  workers: Set<WorkerId>;
}

export interface IdempotencyEntry {
  bodyHash: string;
  ids: JobId[];
  createdAtMs: number;
}

export interface KeyedSubmission {
  tenant: string;
  key: string;
  entry: IdempotencyEntry;
}

export function idempotencyKey(tenant: string, key: string): string {
  return `${tenant}\n${key}`;
}

/** What a rebuild starts from: rows of everything that has not ended. */
export interface Snapshot {
  clusterId: ClusterId;
  epoch: number;
  /** Highest event number that was committed. */
  seq: number;
  jobs: Job[];
  tasks: Task[];
  attempts: Attempt[];
  /** Oldest first. */
  checkpoints: Checkpoint[];
  claims: Claim[];
  workers: Worker[];
  /** That have not ended. */
  instances: Instance[];
  hosts: Host[];
  spending: PoolSpending[];
  tokens: Token[];
  budgets: Budget[];
  dataSets: DataSet[];
  downstream: JobDownstream[];
  accounts: Account[];
  /** Of the newest day there is. */
  usageDays: UsageDay[];
  /** That are still to be delivered. */
  notices: QueuedNotice[];
  tenants: Tenant[];
  users: User[];
  auditHeads: AuditHead[];
  idempotency: KeyedSubmission[];
}

/** What a store that nothing was written to yet would give. */
export function emptySnapshot(clusterId: ClusterId, epoch: number): Snapshot {
  const jobs = { jobs: [], tasks: [], attempts: [], checkpoints: [], downstream: [] };
  const fleet = { claims: [], workers: [], tokens: [], instances: [], hosts: [], spending: [] };
  const money = { budgets: [], dataSets: [], accounts: [], usageDays: [], notices: [] };
  const people = { tenants: [], users: [], auditHeads: [] };
  return { clusterId, epoch, seq: 0, ...jobs, ...fleet, ...money, ...people, idempotency: [] };
}

/** Indices of an array need not be dense; the list is sorted by them. */
export function taskAt(tasks: Task[], index: number): Task | undefined {
  if (tasks[index]?.index === index) return tasks[index];
  let low = 0;
  let high = tasks.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const task = tasks[middle];
    if (!task || task.index === index) return task;
    if (task.index < index) low = middle + 1;
    else high = middle - 1;
  }
  return undefined;
}

/** The first task that did not exit 0 gives a job its code and its reason. */
export function endingOf(live: LiveJob): JobEnding {
  let exitCode: number | null = null;
  let startedAtMs: number | null = null;
  let reason = '';
  for (const task of live.tasks) {
    if (task.exitCode !== null && (exitCode === null || exitCode === 0)) exitCode = task.exitCode;
    if (task.startedAtMs !== null && (startedAtMs === null || task.startedAtMs < startedAtMs)) {
      startedAtMs = task.startedAtMs;
    }
    if (!reason && taskEnded(task.state) && task.state !== 'SUCCEEDED') reason = task.reason;
  }
  return {
    state: jobState(live.counts),
    reason: reason || (live.tasks[0]?.reason ?? ''),
    exitCode,
    startedAtMs,
    succeeded: live.counts.SUCCEEDED,
    failed: live.counts.FAILED,
    cancelled: live.counts.CANCELLED,
    unschedulable: live.counts.UNSCHEDULABLE,
  };
}
