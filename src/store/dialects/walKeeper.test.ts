/** The WAL stays short while commits go on, whoever copies its pages. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCheckpointer, walKeeper } from './walKeeper.ts';

const LIMIT_PAGES = 20;
const PAGES_PER_COMMIT = 3;

let dir: string;
let db: DatabaseSync;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-wal-'));
  db = new DatabaseSync(join(dir, 'test.db'));
  db.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a)');
});

afterEach(() => {
  db.close();
  rmSync(dir, { recursive: true, force: true });
});

function commit(): void {
  db.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(PAGES_PER_COMMIT * 4096));
}

function walPages(): number {
  return Number(db.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.['log']);
}

test('it starts over although another connection never catches up by itself', async () => {
  const checkpointer = createCheckpointer(join(dir, 'test.db'));
  const committed = walKeeper(db, LIMIT_PAGES, () => checkpointer.checkpoint());
  let longest = 0;
  for (let n = 0; n < 200; n++) {
    commit();
    committed();
    longest = Math.max(longest, walPages());
    // The other thread gets a turn now and then, always with commits before it is heard of.
    if (n % 3 === 0) await Promise.resolve();
  }
  expect(longest).toBeLessThan(LIMIT_PAGES * 3);
  expect(db.prepare('SELECT count(*) AS n FROM t').get()?.['n']).toBe(200);
});

test('one copy at a time; one that fails is tried again', async () => {
  let calls = 0;
  const committed = walKeeper(db, LIMIT_PAGES, async () => {
    calls++;
    throw new Error('the disk is full');
  });
  for (let n = 0; n < 50; n++) {
    commit();
    committed();
  }
  expect(calls).toBe(1);
  await new Promise(setImmediate);
  commit();
  committed();
  expect(calls).toBe(2);
});
