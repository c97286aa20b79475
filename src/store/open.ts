/** Opens the store the settings name: the writer's side and the readers' side. */
import { openPostgres, openPostgresHistory } from './dialects/postgres.ts';
import { openSqlite, openSqliteHistory } from './dialects/sqlite.ts';
import type { History, Store } from './contract.ts';

export type StoreSettings =
  | { kind: 'sqlite'; file: string; cacheBytes: number; checkpointPages: number }
  | { kind: 'postgres'; url: string };

export function openStore(settings: StoreSettings): Store {
  return settings.kind === 'sqlite' ? openSqlite(settings) : openPostgres(settings.url);
}

export function openHistory(settings: StoreSettings): History {
  return settings.kind === 'sqlite'
    ? openSqliteHistory(settings)
    : openPostgresHistory(settings.url);
}
