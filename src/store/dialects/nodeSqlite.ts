/** node:sqlite behind Kysely's own SQLite dialect. Kysely has none for it. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { SqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely';

const STATEMENTS_KEPT = 200;

export function nodeSqliteDialect(db: DatabaseSync): SqliteDialect {
  const kept = new Map<string, SqliteStatement>();
  const database: SqliteDatabase = {
    close: () => db.close(),
    prepare(text) {
      const known = kept.get(text);
      if (known) return known;
      const statement = wrap(db.prepare(text));
      const oldest = kept.size >= STATEMENTS_KEPT ? kept.keys().next().value : undefined;
      if (oldest !== undefined) kept.delete(oldest);
      kept.set(text, statement);
      return statement;
    },
  };
  return new SqliteDialect({ database });
}

function wrap(statement: StatementSync): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...bindable(parameters)),
    run: (parameters) => statement.run(...bindable(parameters)),
    iterate: (parameters) => statement.iterate(...bindable(parameters)),
  };
}

/**
 * node:sqlite takes an object in first place for NAMED parameters and shifts the rest, silently.
 */
function bindable(parameters: readonly unknown[]): SQLInputValue[] {
  for (const value of parameters) {
    const plain = value === null || typeof value === 'string' || typeof value === 'number';
    if (!plain && !ArrayBuffer.isView(value)) throw new TypeError(`cannot bind a ${typeof value}`);
  }
  return parameters as SQLInputValue[];
}
