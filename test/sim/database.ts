/** The store's files: copied ready from a template, and left behind by a crash as they are. */
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqlite } from '../../src/store/dialects/sqlite.ts';

export const CLUSTER_ID = 'c0sim';

/** Real SQLite on a file in memory: the simulator's disk is not what is being tested for speed. */
const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
let folder: string | null = null;
let made = 0;

/**
 * A database that was migrated and used once; making one for each seed would take a fifth of its
 * time.
 */
export async function freshDatabase(): Promise<string> {
  if (!folder) {
    folder = mkdtempSync(join(parent, 'drover-sim-'));
    const mine = folder;
    process.once('exit', () => rmSync(mine, { recursive: true, force: true }));
    const store = openSqlite(sqliteOptions(join(folder, 'template.db')));
    await store.boot(0, CLUSTER_ID);
    await store.close();
  }
  const file = join(folder, `seed${made++}.db`);
  copyFileSync(join(folder, 'template.db'), file);
  return file;
}

export function sqliteOptions(file: string) {
  // Few pages, so that what a crash leaves is sometimes in the log and sometimes in the file.
  return { file, cacheBytes: 1 << 20, checkpointPages: 60 };
}

/** What a killed process leaves: the file and the log of what is not yet folded into it. */
export function keepAsIs(file: string): () => void {
  const kept = ['', '-wal'].filter((suffix) => existsSync(file + suffix));
  for (const suffix of kept) copyFileSync(file + suffix, `${file}${suffix}.kept`);
  return () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
    for (const suffix of kept) renameSync(`${file}${suffix}.kept`, file + suffix);
  };
}

export function removeDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '.lock']) rmSync(file + suffix, { force: true });
}
