/** The embedded store: one SQLite file in WAL mode, every commit on disk before it is answered. */
import { chmodSync, existsSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { Kysely } from 'kysely';
import { DroverError } from '../../lib/errors.ts';
import { DeposedError, type Store, type Value, type WriteBatch } from '../contract.ts';
import { loadMigrations, pendingMigrations } from '../migrations.ts';
import { readSnapshot } from '../rebuild.ts';
import { rowWidth, TABLES, TABLE_NAMES, type TableName } from '../tables.ts';
import type { ControllerRow, Database } from '../database.ts';
import { nodeSqliteDialect } from './nodeSqlite.ts';
import { walKeeper } from './walKeeper.ts';

/** Older ones have bugs that a WAL under load can meet. */
const OLDEST_SQLITE = '3.51.3';

export interface SqliteOptions {
  file: string;
  cacheBytes: number;
  /** Pages in the WAL before it is folded back into the file. */
  checkpointPages: number;
  /** Folds it back on another thread; without it commits do that themselves now and then. */
  checkpoint?: () => Promise<void>;
}

/** Statements for so many rows at once, the largest first: a call costs as much as a row. */
type Insert = { rows: number; statement: StatementSync }[];

interface Prepared {
  fresh: Insert;
  insert: Insert;
  update: StatementSync | null;
  delete: StatementSync;
}

/** A call of 1,000 jobs, a batch of single ones, and the rest. More at once gain nothing. */
const ROWS_AT_ONCE = [40, 8, 1];

export function openSqlite(options: SqliteOptions): Store {
  checkSqliteVersion();
  const lock = takeLock(`${options.file}.lock`);
  const db = openFile(options.file, false);
  setJournal(db, options.file);
  db.exec(`PRAGMA cache_size = -${Math.ceil(options.cacheBytes / 1024)}`);
  const { checkpointPages, checkpoint } = options;
  db.exec(`PRAGMA wal_autocheckpoint = ${checkpoint ? 0 : checkpointPages}`);
  const committed = checkpoint ? walKeeper(db, checkpointPages, checkpoint) : () => {};
  let statements: Map<TableName, Prepared> | null = null;
  let advance: StatementSync | null = null;
  const kysely = new Kysely<Database>({ dialect: nodeSqliteDialect(db) });
  const lead = async (nowMs: number, newClusterId: string): Promise<ControllerRow> => {
    takeEpoch(db, nowMs, newClusterId);
    statements = prepareAll(db);
    advance = db.prepare('UPDATE controller SET batch = batch + 1, seq = ? WHERE epoch = ?');
    return kysely.selectFrom('controller').selectAll().executeTakeFirstOrThrow();
  };
  return {
    kind: 'sqlite',
    lead,
    async boot(nowMs, newClusterId) {
      const controller = await lead(nowMs, newClusterId);
      return readSnapshot(kysely, controller, nowMs);
    },
    async commit(batch) {
      if (!statements || !advance) throw new Error('commit before boot');
      commit(db, statements, advance, batch);
      committed();
    },
    close() {
      db.close();
      lock.close();
      return Promise.resolve();
    },
  };
}

export function openSqliteReader(options: SqliteOptions): Kysely<Database> {
  const db = openFile(options.file, true);
  db.exec(`PRAGMA cache_size = -${Math.ceil(options.cacheBytes / 4096)}`);
  return new Kysely<Database>({ dialect: nodeSqliteDialect(db) });
}

export function checkSqliteVersion(version: string = process.versions.sqlite ?? '0'): void {
  const numbers = (text: string): number[] => text.split('.').map(Number);
  const [have, need] = [numbers(version), numbers(OLDEST_SQLITE)];
  for (let i = 0; i < need.length; i++) {
    const [a, b] = [have[i] ?? 0, need[i] ?? 0];
    if (a > b) return;
    if (a < b) {
      throw new DroverError('CONFLICT', `this Node has SQLite ${version}, too old to be safe`, {
        hint: `use a Node with SQLite ${OLDEST_SQLITE} or newer; "make setup" gets one`,
      });
    }
  }
}

function openFile(file: string, readOnly: boolean): DatabaseSync {
  try {
    const db = new DatabaseSync(file, { readOnly });
    if (!readOnly) chmodSync(file, 0o600);
    return db;
  } catch (cause) {
    throw new DroverError('UNAVAILABLE', `cannot open the database ${file}: ${text(cause)}`, {
      hint: 'check that the data folder exists, is writable and that the disk has room',
      cause,
    });
  }
}

/** The first to read the file, so the first to see that it is something else. */
function setJournal(db: DatabaseSync, file: string): void {
  try {
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 0');
  } catch (cause) {
    throw new DroverError('UNAVAILABLE', `cannot use the database ${file}: ${text(cause)}`, {
      hint: 'give another data folder with --data, or put a backup of it in its place',
      cause,
    });
  }
}

/**
 * An exclusive lock on a file beside the database: the system frees it when the process ends,
 * however.
 */
function takeLock(file: string): DatabaseSync {
  const fresh = !existsSync(file);
  const lock = openFile(file, false);
  try {
    if (fresh) lock.exec('PRAGMA journal_mode = DELETE');
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return lock;
  } catch (cause) {
    lock.close();
    throw new DroverError('CONFLICT', `another controller is running on this store (${file})`, {
      hint: 'stop it first, or give this one another data folder with --data',
      cause,
    });
  }
}

function takeEpoch(db: DatabaseSync, nowMs: number, newClusterId: string): void {
  const current = Number(db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
  for (const migration of pendingMigrations(loadMigrations('sqlite'), current)) {
    transaction(db, () => {
      db.exec(migration.sql);
      db.exec(`PRAGMA user_version = ${migration.version}`);
    });
  }
  transaction(db, () => {
    db.prepare('INSERT INTO controller VALUES (1, ?, 0, 0, 0) ON CONFLICT (id) DO NOTHING').run(
      newClusterId,
    );
    // Never below what agents may have seen, also after a restore from a backup.
    db.prepare('UPDATE controller SET epoch = max(epoch + 1, ?)').run(nowMs);
  });
}

function prepareAll(db: DatabaseSync): Map<TableName, Prepared> {
  const prepared = new Map<TableName, Prepared>();
  for (const name of TABLE_NAMES) {
    const { key, fixed, mutable } = TABLES[name];
    const insertOf = (columns: string[]): Insert => {
      const row = `(${columns.map(() => '?').join(', ')})`;
      const into = `INSERT INTO ${name} (${columns.join(', ')}) VALUES `;
      return ROWS_AT_ONCE.map((rows) => ({
        rows,
        statement: db.prepare(into + Array.from({ length: rows }, () => row).join(', ')),
      }));
    };
    const where = key.map((column) => `${column} = ?`).join(' AND ');
    const sets = mutable.map((column) => `${column} = ?`).join(', ');
    prepared.set(name, {
      fresh: insertOf([...key, ...fixed]),
      insert: insertOf([...key, ...fixed, ...mutable]),
      update: sets ? db.prepare(`UPDATE ${name} SET ${sets} WHERE ${where}`) : null,
      delete: db.prepare(`DELETE FROM ${name} WHERE ${where}`),
    });
  }
  return prepared;
}

function commit(
  db: DatabaseSync,
  statements: Map<TableName, Prepared>,
  advance: StatementSync,
  batch: WriteBatch,
): void {
  transaction(db, () => {
    if (advance.run(batch.seq, batch.epoch).changes !== 1) throw new DeposedError(batch.epoch);
    for (const name of TABLE_NAMES) {
      const writes = batch.tables[name];
      const prepared = statements.get(name);
      if (!writes || !prepared) continue;
      // What goes goes first: another row may take its key in the same batch.
      runAll(prepared.delete, writes.deletes, rowWidth(name, 'delete'));
      insertAll(prepared.fresh, writes.fresh, rowWidth(name, 'fresh'));
      insertAll(prepared.insert, writes.inserts, rowWidth(name, 'insert'));
      runAll(prepared.update, writes.updates, rowWidth(name, 'update'));
    }
  });
}

function insertAll(insert: Insert, values: Value[], width: number): void {
  let at = 0;
  for (const { rows, statement } of insert) {
    const step = width * rows;
    for (; at + step <= values.length; at += step) statement.run(...values.slice(at, at + step));
  }
}

function runAll(statement: StatementSync | null, values: Value[], width: number): void {
  for (let at = 0; at < values.length; at += width) {
    statement?.run(...values.slice(at, at + width));
  }
}

function transaction(db: DatabaseSync, run: () => void): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    run();
    db.exec('COMMIT');
  } catch (error) {
    // A failed COMMIT may have rolled back by itself; the process ends either way.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function text(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
