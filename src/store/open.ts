/** Opens the store the settings name: the writer's side and the readers' side. */
import { openPostgres, openPostgresHistory } from './dialects/postgres.ts';
import { openSqlite, openSqliteHistory } from './dialects/sqlite.ts';
import type { History, Store } from './contract.ts';

export type StoreSettings =
  | { kind: 'sqlite'; file: string; cacheBytes: number; checkpointPages: number }
  | { kind: 'postgres'; url: string };

/** `onLost`: this controller no longer holds the store, also when it has nothing to commit. */
export function openStore(settings: StoreSettings, onLost: (error: Error) => void): Store {
  return settings.kind === 'sqlite' ? openSqlite(settings) : openPostgres(settings.url, onLost);
}

export function openHistory(settings: StoreSettings): History {
  return settings.kind === 'sqlite'
    ? openSqliteHistory(settings)
    : openPostgresHistory(settings.url);
}
