/** The database file as anybody else would read it: on a connection of its own. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { attemptKey, rowAccountKey, taskKey, usageDayKey, type Mirror } from './mirror.ts';

export class Disk {
  readonly #db: DatabaseSync;
  readonly #job: StatementSync;
  readonly #sums: StatementSync;

  constructor(file: string) {
    this.#db = new DatabaseSync(file, { readOnly: true });
    this.#job = this.#db.prepare('SELECT 1 FROM jobs WHERE id = ?');
    const sums =
      'count(*) count, coalesce(sum(micros), 0) micros, coalesce(sum(device_ms), 0) time';
    this.#sums = this.#db.prepare(`SELECT ${sums} FROM ledger`);
  }

  hasJob(id: string): boolean {
    return this.#job.get(id) !== undefined;
  }

  /** What differs from the mirror, in words; null when nothing does. */
  difference(mirror: Mirror): string | null {
    return (
      this.#compare('jobs', mirror.jobs, (row) => row.id) ??
      this.#compare('tasks', mirror.tasks, taskKey) ??
      this.#compare('attempts', mirror.attempts, attemptKey) ??
      this.#compare('workers', mirror.workers, (row) => row.id) ??
      this.#compare('instances', mirror.instances, (row) => row.id) ??
      this.#compare('claims', mirror.claims, (row) => row.owner) ??
      this.#compare('budgets', mirror.budgets, rowAccountKey) ??
      this.#compare('accounts', mirror.accounts, rowAccountKey) ??
      this.#compare('usage_days', mirror.usageDays, usageDayKey) ??
      this.#ledger(mirror)
    );
  }

  close(): void {
    this.#db.close();
  }

  #ledger({ ledgerEntries }: Mirror): string | null {
    const { count, micros, time } = this.#sums.get() as Record<string, number>;
    if (count !== ledgerEntries) return `there are ${count} ledger entries, not ${ledgerEntries}`;
    return micros === 0 && time === 0 ? null : `the ledger's sums are ${micros} and ${time}, not 0`;
  }

  #compare<Row extends object>(
    table: string,
    known: Map<string, Row>,
    keyOf: (row: Row) => string,
  ): string | null {
    const rows = this.#db.prepare(`SELECT * FROM ${table}`).all() as Row[];
    for (const row of rows) {
      const wanted = known.get(keyOf(row));
      for (const column in row) {
        if (wanted?.[column] === row[column]) continue;
        const told = `${String(row[column])}, not ${String(wanted?.[column])}`;
        return `${table} ${keyOf(row)} has ${column} ${told}`;
      }
    }
    if (rows.length === known.size) return null;
    return `there are ${rows.length} ${table}, not ${known.size}`;
  }
}
