/**
 * The store on PostgreSQL: the same tables and batches, one connection that holds the lock and
 * writes.
 */
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { DroverError } from '../../lib/errors.ts';
import { DeposedError, type Store, type Value, type WriteBatch } from '../contract.ts';
import { loadMigrations, pendingMigrations } from '../migrations.ts';
import { readSnapshot } from '../rebuild.ts';
import { rowWidth, TABLES, TABLE_NAMES, type RowOperation, type TableName } from '../tables.ts';
import type { ControllerRow, Database } from '../database.ts';

/** Any constant will do, as long as every Drover uses the same: "drover" in hex. */
const LOCK_KEY = 0x64726f766572n;
const READ_CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 10_000;
const INT8 = 20;

/** Milliseconds and counters fit a double exactly; bigint objects would leak into every sum. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

interface Statements {
  fresh: string;
  insert: string;
  update: string | null;
  delete: string;
}

export function openPostgres(url: string, onLost: (error: Error) => void): Store {
  const client = new pg.Client({
    connectionString: url,
    types,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  });
  // The lock went with the connection: another controller may be at work, so that even a read
  // answered here would be old news.
  let broken: Error | null = null;
  client.on('error', (error) => {
    broken = error;
    onLost(error);
  });
  const statements = new Map(TABLE_NAMES.map((name) => [name, statementsOf(name)]));
  const lead = async (nowMs: number, newClusterId: string): Promise<ControllerRow> => {
    await connect(client, url);
    await takeLock(client);
    await migrate(client);
    await client.query(
      'INSERT INTO controller VALUES (1, $1, 0, 0, 0) ON CONFLICT (id) DO NOTHING',
      [newClusterId],
    );
    const taken = await client.query<ControllerRow>(
      'UPDATE controller SET epoch = greatest(epoch + 1, $1) RETURNING *',
      [nowMs],
    );
    const controller = taken.rows[0];
    if (!controller) throw new Error('the controller row is missing');
    return controller;
  };
  return {
    kind: 'postgres',
    lead,
    async boot(nowMs, newClusterId) {
      const controller = await lead(nowMs, newClusterId);
      const reads = openPostgresReader(url);
      try {
        return await readSnapshot(reads, controller, nowMs);
      } finally {
        await reads.destroy();
      }
    },
    async commit(batch) {
      if (broken) throw broken;
      await commit(client, statements, batch);
    },
    close: () => client.end(),
  };
}

export function openPostgresReader(url: string): Kysely<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    types,
    max: READ_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // Idle connections die with the server; the next query opens another or fails by itself.
  pool.on('error', () => undefined);
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
}

async function connect(client: pg.Client, url: string): Promise<void> {
  try {
    await client.connect();
  } catch (cause) {
    const where = new URL(url);
    throw new DroverError(
      'UNAVAILABLE',
      `cannot reach PostgreSQL at ${where.host}${where.pathname}: ${(cause as Error).message}`,
      { hint: 'check store.url (DROVER_STORE_URL) and that the server is running', cause },
    );
  }
}

/**
 * Bound to this session: it is gone when the connection is, and then no commit can succeed either.
 */
async function takeLock(client: pg.Client): Promise<void> {
  const result = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [
    LOCK_KEY.toString(),
  ]);
  if (result.rows[0]?.held) return;
  throw new DroverError('CONFLICT', 'another controller is running on this database', {
    hint: 'stop it first, or give this one another database with store.url',
  });
}

async function migrate(client: pg.Client): Promise<void> {
  await client.query('CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)');
  const found = await client.query<{ version: number }>(
    'SELECT coalesce(max(version), 0)::int8 AS version FROM schema_version',
  );
  const current = found.rows[0]?.version ?? 0;
  for (const migration of pendingMigrations(loadMigrations('postgres'), current)) {
    await transaction(client, async () => {
      await client.query(migration.sql);
      await client.query('INSERT INTO schema_version VALUES ($1)', [migration.version]);
    });
  }
}

/** One statement per table and operation, whatever the number of rows: columns travel as arrays. */
function statementsOf(name: TableName): Statements {
  const { key, fixed, mutable, integers, doubles } = TABLES[name];
  const typeOf = (column: string): string => {
    if (integers.has(column)) return 'int8';
    return doubles.has(column) ? 'float8' : 'text';
  };
  const arrays = (columns: readonly string[]): string =>
    columns.map((column, at) => `$${at + 1}::${typeOf(column)}[]`).join(', ');
  const changed = [...mutable, ...key];
  const match = key.map((column) => `t.${column} = v.${column}`).join(' AND ');
  const sets = mutable.map((column) => `${column} = v.${column}`).join(', ');
  const insertOf = (columns: string[]): string =>
    `INSERT INTO ${name} (${columns.join(', ')}) SELECT * FROM unnest(${arrays(columns)})`;
  const valuesOf = (columns: readonly string[]): string =>
    `unnest(${arrays(columns)}) AS v(${columns.join(', ')})`;
  return {
    fresh: insertOf([...key, ...fixed]),
    insert: insertOf([...key, ...fixed, ...mutable]),
    update: sets ? `UPDATE ${name} t SET ${sets} FROM ${valuesOf(changed)} WHERE ${match}` : null,
    delete: `DELETE FROM ${name} t USING ${valuesOf(key)} WHERE ${match}`,
  };
}

async function commit(
  client: pg.Client,
  statements: Map<TableName, Statements>,
  batch: WriteBatch,
): Promise<void> {
  await transaction(client, async () => {
    const advanced = await client.query({
      name: 'advance',
      text: 'UPDATE controller SET batch = batch + 1, seq = $1 WHERE epoch = $2',
      values: [batch.seq, batch.epoch],
    });
    if (advanced.rowCount !== 1) throw new DeposedError(batch.epoch);
    for (const name of TABLE_NAMES) {
      const writes = batch.tables[name];
      const prepared = statements.get(name);
      if (!writes || !prepared) continue;
      // What goes goes first: another row may take its key in the same batch.
      await run(client, name, 'delete', prepared.delete, writes.deletes);
      await run(client, name, 'fresh', prepared.fresh, writes.fresh);
      await run(client, name, 'insert', prepared.insert, writes.inserts);
      await run(client, name, 'update', prepared.update, writes.updates);
    }
  });
}

async function run(
  client: pg.Client,
  table: TableName,
  operation: RowOperation,
  text: string | null,
  values: Value[],
): Promise<void> {
  if (values.length === 0 || text === null) return;
  const width = rowWidth(table, operation);
  const columns: Value[][] = Array.from({ length: width }, () => []);
  for (let at = 0; at < values.length; at++) columns[at % width]?.push(values[at] ?? null);
  await client.query({ name: `${table}-${operation}`, text, values: columns });
}

async function transaction(client: pg.Client, body: () => Promise<void>): Promise<void> {
  await client.query('BEGIN');
  try {
    await body();
    await client.query('COMMIT');
  } catch (error) {
    // Best effort: the process ends, and the server rolls back with the session.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
