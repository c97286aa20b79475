/** Everything durable, rebuilt from batches as they are committed: what checkers look at. */
import type { Value, WriteBatch } from '../../../src/store/contract.ts';
import { TABLES, type TableName } from '../../../src/store/tables.ts';
import type {
  AccountRow,
  AttemptRow,
  BudgetRow,
  CheckpointRow,
  ClaimRow,
  EventRow,
  JobRow,
  LedgerRow,
  SubmissionRow,
  TaskRow,
  UsageDayRow,
} from '../../../src/store/database.ts';
import type { InstanceRow, WorkerRow } from '../../../src/store/machineRows.ts';

export interface Change<Row> {
  before: Row | undefined;
  row: Row;
}

/** One batch as checkers read it; the mirror already holds its rows. */
export interface Commit {
  epoch: number;
  events: EventRow[];
  jobs: Change<JobRow>[];
  submissions: SubmissionRow[];
  tasks: Change<TaskRow>[];
  attempts: Change<AttemptRow>[];
  workers: Change<WorkerRow>[];
  instances: Change<InstanceRow>[];
  claims: Change<ClaimRow>[];
  freed: ClaimRow[];
  budgets: Change<BudgetRow>[];
  budgetsGone: BudgetRow[];
  accounts: Change<AccountRow>[];
  usageDays: Change<UsageDayRow>[];
  checkpoints: Change<CheckpointRow>[];
  /** In the order they were written. */
  ledger: LedgerRow[];
}

export class Mirror {
  readonly jobs = new Map<string, JobRow>();
  readonly tasks = new Map<string, TaskRow>();
  readonly attempts = new Map<string, AttemptRow>();
  readonly attemptsByUid = new Map<string, string>();
  readonly workers = new Map<string, WorkerRow>();
  readonly instances = new Map<string, InstanceRow>();
  readonly claims = new Map<string, ClaimRow>();
  readonly budgets = new Map<string, BudgetRow>();
  readonly accounts = new Map<string, AccountRow>();
  readonly usageDays = new Map<string, UsageDayRow>();
  ledgerEntries = 0;

  attempt(uid: string): AttemptRow | undefined {
    return this.attempts.get(this.attemptsByUid.get(uid) ?? '');
  }

  apply(batch: WriteBatch): Commit {
    const freed = (batch.tables.claims?.deletes ?? []).flatMap((owner) => {
      const claim = this.claims.get(String(owner));
      this.claims.delete(String(owner));
      return claim ? [claim] : [];
    });
    const budgetsGone: BudgetRow[] = [];
    const budgetKeys = batch.tables.budgets?.deletes ?? [];
    for (let at = 0; at < budgetKeys.length; at += 2) {
      const key = accountKey(String(budgetKeys[at]), String(budgetKeys[at + 1]));
      const budget = this.budgets.get(key);
      if (budget) budgetsGone.push(budget);
      this.budgets.delete(key);
    }
    const ledger = merge(batch, 'ledger', new Map<string, LedgerRow>(), ledgerKey);
    this.ledgerEntries += ledger.length;
    const attempts = merge(batch, 'attempts', this.attempts, attemptKey);
    for (const { row, before } of attempts) {
      if (!before) this.attemptsByUid.set(row.uid, attemptKey(row));
    }
    return {
      epoch: batch.epoch,
      events: merge(batch, 'events', new Map<string, EventRow>(), (row) => String(row.seq)).map(
        ({ row }) => row,
      ),
      jobs: merge(batch, 'jobs', this.jobs, (row) => row.id),
      submissions: merge(
        batch,
        'submissions',
        new Map<string, SubmissionRow>(),
        (row) => row.first_job,
      ).map(({ row }) => row),
      tasks: merge(batch, 'tasks', this.tasks, taskKey),
      attempts,
      workers: merge(batch, 'workers', this.workers, (row) => row.id),
      instances: merge(batch, 'instances', this.instances, (row) => row.id),
      claims: merge(batch, 'claims', this.claims, (row) => row.owner),
      freed,
      budgets: merge(batch, 'budgets', this.budgets, rowAccountKey),
      budgetsGone,
      accounts: merge(batch, 'accounts', this.accounts, rowAccountKey),
      usageDays: merge(batch, 'usage_days', this.usageDays, usageDayKey),
      checkpoints: merge(batch, 'checkpoints', new Map<string, CheckpointRow>(), checkpointKey),
      ledger: ledger.map(({ row }) => row),
    };
  }
}

export function taskKey(row: Pick<TaskRow, 'job' | 'task_index'>): string {
  return `${row.job}.${row.task_index}`;
}

export function attemptKey(row: Pick<AttemptRow, 'job' | 'task_index' | 'n'>): string {
  return `${row.job}.${row.task_index}.${row.n}`;
}

/** An empty user is the whole tenant. */
export function accountKey(tenant: string, user: string): string {
  return `${tenant}/${user}`;
}

export function rowAccountKey(row: Pick<AccountRow, 'tenant' | 'user_name'>): string {
  return accountKey(row.tenant, row.user_name);
}

export function usageDayKey({ day, tenant, user_name: user, pool }: UsageDayRow): string {
  return `${day} ${tenant}/${user} ${pool}`;
}

function checkpointKey(row: CheckpointRow): string {
  return `${taskKey(row)} ${row.n}`;
}

function ledgerKey({ attempt, n, account }: LedgerRow): string {
  return `${attempt} ${n} ${account}`;
}

/** What the schema gives the mutable columns of a fresh row that are not null. */
const FRESH: Partial<Record<TableName, Record<string, Value>>> = {
  jobs: { round: 0, spent_micros: 0, version: 1 },
  attempts: {
    ...{ state: 'ASSIGNED', message: '', version: 1 },
    ...{ charges: 0, charged_micros: 0, charged_device_ms: 0, facts: '{}' },
  },
};

function merge<Row extends object>(
  batch: WriteBatch,
  table: TableName,
  rows: Map<string, Row>,
  keyOf: (row: Row) => string,
): Change<Row>[] {
  const writes = batch.tables[table];
  if (!writes) return [];
  const { key, fixed, mutable } = TABLES[table];
  const changes: Change<Row>[] = [];
  const put = (part: Row): void => {
    const before = rows.get(keyOf(part));
    const row = before ? { ...before, ...part } : part;
    rows.set(keyOf(part), row);
    changes.push({ before, row });
  };
  // Updates first: one batch may hold the end of an attempt and the beginning of the next.
  for (const part of named(writes.updates, [...mutable, ...key])) put(part as Row);
  for (const part of named(writes.inserts, [...key, ...fixed, ...mutable])) put(part as Row);
  for (const part of named(writes.fresh, [...key, ...fixed])) {
    for (const column of mutable) part[column] = FRESH[table]?.[column] ?? null;
    put(part as Row);
  }
  return changes;
}

/** The rows of a flat list. */
function* named(values: Value[], columns: string[]): Generator<Record<string, Value>> {
  for (let at = 0; at < values.length; at += columns.length) {
    const row: Record<string, Value> = {};
    for (const [i, column] of columns.entries()) row[column] = values[at + i] ?? null;
    yield row;
  }
}
