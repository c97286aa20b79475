/**
 * What a store does: boot once, commit batches, answer history. SQLite and PostgreSQL pass one
 * test.
 */
import type { Snapshot } from '../state/live.ts';
import type { TableName } from './tables.ts';
import type {
  AttemptRow,
  CheckpointRow,
  ControllerRow,
  EventRow,
  JobRow,
  TaskRow,
  UsageDayRow,
} from './database.ts';
import type { InstanceRow, WorkerRow } from './machineRows.ts';

export type Value = string | number | null;

/**
 * Rows as the statements bind them, one after the other in one flat list (a list per row would cost
 * more to pass between threads than to write). Fresh rows are those whose mutable columns have
 * their defaults, so only key and fixed columns are there; inserts are whole; updates are mutable
 * columns, then the key.
 */
export interface TableWrites {
  fresh: Value[];
  inserts: Value[];
  updates: Value[];
  deletes: Value[];
}

export interface WriteBatch {
  epoch: number;
  /** Highest event number in it or before. */
  seq: number;
  tables: Partial<Record<TableName, TableWrites>>;
}

export interface Writer {
  /**
   * Resolves when it is on disk. Any rejection means: unknown or deposed, so the process must end.
   */
  commit(batch: WriteBatch): Promise<void>;
}

export interface Store extends Writer {
  readonly kind: 'sqlite' | 'postgres';
  /** Takes the lock, migrates and takes a new epoch. */
  lead(nowMs: number, newClusterId: string): Promise<ControllerRow>;
  /** The same, and reads what has not ended; where both happen on one thread. */
  boot(nowMs: number, newClusterId: string): Promise<Snapshot>;
  close(): Promise<void>;
}

export interface JobFilter {
  /** Only ids below this one; lists run from the newest to the oldest. */
  before?: string;
  limit: number;
  endState?: string;
  name?: string;
  owner?: string;
  parent?: string;
  /** Only of this line of jobs, its first included. */
  root?: string;
}

/** Reads of what is committed, on a connection of their own. Ask for whom first. */
export interface History {
  forTenant(tenant: string): TenantHistory;
  system(): SystemHistory;
  close(): Promise<void>;
}

export interface TenantHistory {
  job(id: string): Promise<JobRow | null>;
  jobs(filter: JobFilter): Promise<JobRow[]>;
  tasks(job: string, afterIndex: number, limit: number): Promise<TaskRow[]>;
  attempts(job: string, after: [index: number, n: number], limit: number): Promise<AttemptRow[]>;
  checkpoints(
    job: string,
    after: [index: number, n: number],
    limit: number,
  ): Promise<CheckpointRow[]>;
  /** Those that name blobs, by id. */
  specsWithBlobs(afterId: string, limit: number): Promise<Pick<JobRow, 'id' | 'spec'>[]>;
  /** Different ones, in their order. */
  manifests(of: 'results' | 'checkpoints', after: string, limit: number): Promise<string[]>;
  /** From the newest to the oldest. */
  audited(before: [epoch: number, seq: number], limit: number): Promise<EventRow[]>;
  events(job: string, after: [epoch: number, seq: number], limit: number): Promise<EventRow[]>;
}

export interface SystemHistory {
  attempt(job: string, index: number, n: number): Promise<AttemptRow | null>;
  /** Those of these ids, ended ones too. */
  workers(ids: readonly string[]): Promise<WorkerRow[]>;
  /** Of one pool or (empty) of all, from the newest to the oldest. */
  instances(pool: string, before: string, limit: number): Promise<InstanceRow[]>;
  /** Rows of the days from `first` to `last`, of one tenant or (null) of all. */
  usageDays(first: number, last: number, tenant: string | null): Promise<UsageDayRow[]>;
  /** Cheap proof that the database still answers. */
  ping(): Promise<void>;
}

/** The newest epoch in the database is not this controller's. */
export class DeposedError extends Error {
  constructor(epoch: number) {
    super(`another controller has taken over: epoch ${epoch} is no longer the newest`);
    this.name = 'DeposedError';
  }
}
