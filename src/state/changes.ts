/**
 * What changed since the last batch: rows for the writer, events in order, and hints for the
 * planner.
 */
import type { Attempt } from '../model/attempt.ts';
import type { Account } from '../model/account.ts';
import type { Budget } from '../model/budget.ts';
import type { Checkpoint } from '../model/checkpoint.ts';
import type { Claim } from '../model/claim.ts';
import type { DataSet } from '../model/dataSet.ts';
import type { JobDownstream } from '../model/downstream.ts';
import type { Host } from '../model/host.ts';
import type { Instance } from '../model/instance.ts';
import type { PoolSpending } from '../model/poolSpending.ts';
import type { Event, EventKind } from '../model/event.ts';
import type { AttemptUid, JobId, TaskId, WorkerId } from '../model/ids.ts';
import type { Job, JobState } from '../model/job.ts';
import type { LedgerEntry } from '../model/ledger.ts';
import type { QueuedNotice } from '../model/notice.ts';
import type { Task } from '../model/task.ts';
import type { AuditHead } from '../model/auditChain.ts';
import type { Tenant, User } from '../model/tenant.ts';
import type { Token } from '../model/token.ts';
import type { UsageDay } from '../model/usageDay.ts';
import type { Worker } from '../model/worker.ts';
import type { KeyedSubmission } from './live.ts';

export type Operation = 'insert' | 'update';
export type RowOperation = Operation | 'delete';

/** How a job ended: kept on its row, because its tasks leave the memory with it. */
export interface JobEnding {
  state: JobState;
  reason: string;
  exitCode: number | null;
  startedAtMs: number | null;
  succeeded: number;
  failed: number;
  cancelled: number;
  unschedulable: number;
}

export class Changes {
  readonly jobs = new Map<Job, Operation>();
  readonly endings = new Map<Job, JobEnding>();
  readonly submissions: KeyedSubmission[] = [];
  readonly tasks = new Map<Task, Operation>();
  readonly attempts = new Map<Attempt, Operation>();
  readonly workers = new Map<Worker, Operation>();
  readonly instances = new Map<Instance, Operation>();
  readonly hosts = new Map<Host, Operation>();
  readonly spending = new Map<PoolSpending, Operation>();
  readonly tokens = new Map<Token, Operation>();
  readonly checkpoints = new Map<Checkpoint, 'insert' | 'delete'>();
  readonly claims = new Map<Claim, RowOperation>();
  readonly budgets = new Map<Budget, RowOperation>();
  readonly dataSets = new Map<DataSet, RowOperation>();
  readonly downstream = new Map<JobDownstream, RowOperation>();
  readonly accounts = new Map<Account, Operation>();
  readonly usageDays = new Map<UsageDay, Operation>();
  readonly notices = new Map<QueuedNotice, RowOperation>();
  readonly tenants = new Map<Tenant, Operation>();
  readonly users = new Map<User, Operation>();
  readonly auditHeads = new Map<AuditHead, Operation>();
  readonly ledger: LedgerEntry[] = [];
  readonly events: Event[] = [];

  get empty(): boolean {
    return (
      this.events.length === 0 &&
      this.jobs.size === 0 &&
      this.tasks.size === 0 &&
      this.attempts.size === 0 &&
      this.workers.size === 0 &&
      this.instances.size === 0 &&
      this.hosts.size === 0 &&
      this.tokens.size === 0 &&
      this.claims.size === 0 &&
      this.accounts.size === 0 &&
      this.downstream.size === 0 &&
      this.notices.size === 0
    );
  }
}

export function mark<Row>(rows: Map<Row, Operation>, row: Row): void {
  if (!rows.has(row)) rows.set(row, 'update');
}

export interface EventNote {
  kind: EventKind;
  tenant: string;
  job?: JobId;
  task?: TaskId;
  attempt?: AttemptUid;
  worker?: WorkerId;
  data?: Event['data'];
  /** False: one of many that one deed brought about, and not the one that stands for it. */
  audited?: boolean;
}

export function eventOf(note: EventNote, epoch: number, seq: number, atMs: number): Event {
  return {
    epoch,
    seq,
    atMs,
    kind: note.kind,
    tenant: note.tenant,
    job: note.job ?? null,
    task: note.task ?? null,
    attempt: note.attempt ?? null,
    worker: note.worker ?? null,
    data: note.data ?? {},
    hash: null,
  };
}
