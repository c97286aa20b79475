/** The migrations: numbered SQL files, run once each, in order, on both databases. */
import { readdirSync, readFileSync } from 'node:fs';
import { DroverError } from '../lib/errors.ts';

export interface Migration {
  version: number;
  name: string;
  sql: string;
}

const FOLDER = new URL('../../migrations/', import.meta.url);

export function loadMigrations(kind: 'sqlite' | 'postgres'): Migration[] {
  return readdirSync(FOLDER)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .toSorted()
    .map((name) => {
      const text = readFileSync(new URL(name, FOLDER), 'utf8');
      const sql = kind === 'sqlite' ? text.replaceAll(/\/\*sqlite (.*?)\*\//g, '$1') : text;
      return { version: Number(name.slice(0, 4)), name, sql };
    });
}

/**
 * Those still to run. A database from a newer Drover is refused: this one would not understand it.
 */
export function pendingMigrations(all: Migration[], current: number): Migration[] {
  const newest = all.at(-1)?.version ?? 0;
  if (current > newest) {
    throw new DroverError(
      'CONFLICT',
      `the database has schema version ${current}, this Drover knows versions up to ${newest}`,
      { hint: 'start the newer Drover that wrote it, or restore a backup from before the upgrade' },
    );
  }
  return all.filter((migration) => migration.version > current);
}
