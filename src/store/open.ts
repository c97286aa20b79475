/** Opens the store the settings name: the writer's side and the readers' side. */
import type { Kysely } from 'kysely';
import type { Snapshot } from '../state/live.ts';
import type { History, Store } from './contract.ts';
import { openPostgres, openPostgresReader } from './dialects/postgres.ts';
import { openSqlite, openSqliteReader, type SqliteOptions } from './dialects/sqlite.ts';
import { createHistory } from './history.ts';
import { readSnapshot } from './rebuild.ts';
import type { ControllerRow, Database } from './database.ts';

export type StoreSettings =
  | ({ kind: 'sqlite' } & SqliteOptions)
  | { kind: 'postgres'; url: string };

/** `onLost`: this controller no longer holds the store, also when it has nothing to commit. */
export function openStore(settings: StoreSettings, onLost: (error: Error) => void): Store {
  return settings.kind === 'sqlite' ? openSqlite(settings) : openPostgres(settings.url, onLost);
}

export function openHistory(settings: StoreSettings): History {
  const reader = openReader(settings);
  return createHistory(reader, () => reader.destroy());
}

/** Reads what has not ended on a connection of its own, on the thread that will hold it. */
export async function rebuild(
  settings: StoreSettings,
  controller: ControllerRow,
  nowMs: number,
): Promise<Snapshot> {
  const reader = openReader(settings);
  try {
    return await readSnapshot(reader, controller, nowMs);
  } finally {
    await reader.destroy();
  }
}

function openReader(settings: StoreSettings): Kysely<Database> {
  return settings.kind === 'sqlite' ? openSqliteReader(settings) : openPostgresReader(settings.url);
}
