/**
 * The SQL of executing tasks and nothing else: every row that placing, running and ending one
 * leaves behind, in batches of one transaction each. What no scheduler with this history could
 * exceed.
 */
import { DatabaseSync } from 'node:sqlite';

/** Tasks per transaction, about what eight busy agents report at once. */
const BATCH = 250;

/** Executes `count` tasks that were inserted before; returns how long it took and rows per task. */
export function executeBare(file: string, count: number): { elapsedMs: number; rows: number } {
  const db = open(file);
  const run = (sql: string) => db.prepare(sql);
  const begin = run('BEGIN IMMEDIATE');
  const commit = run('COMMIT');
  const transaction = (work: () => void): void => {
    begin.run();
    work();
    commit.run();
  };
  insertPending(db, count, transaction);

  const event = run('INSERT INTO events (task, kind, at) VALUES (?, ?, ?)');
  const assign = run("UPDATE tasks SET state = 'ASSIGNED', version = version + 1 WHERE id = ?");
  const attempt = run("INSERT INTO attempts VALUES (?, ?, ?, 'ASSIGNED', NULL, ?, NULL, NULL)");
  const claim = run('INSERT INTO claims VALUES (?, ?, 1000)');
  const runningTask = run("UPDATE tasks SET state = 'RUNNING', version = version + 1 WHERE id = ?");
  const running = run("UPDATE attempts SET state = 'RUNNING', started = ? WHERE uid = ?");
  const ended = run("UPDATE attempts SET state = 'ENDED', code = 0, ended = ? WHERE uid = ?");
  const endTask = run("UPDATE tasks SET state = 'SUCCEEDED', version = version + 1 WHERE id = ?");
  const endJob = run('UPDATE jobs SET ended = ? WHERE id = ?');
  const release = run('DELETE FROM claims WHERE uid = ?');

  const place = (id: number, now: number): void => {
    assign.run(id);
    attempt.run(`uid-${id}`, id, id % 8, now);
    claim.run(`uid-${id}`, id % 8);
    event.run(id, 'task.assigned', now);
  };
  const starts = (id: number, now: number): void => {
    runningTask.run(id);
    running.run(now, `uid-${id}`);
    event.run(id, 'task.running', now);
  };
  const ends = (id: number, now: number): void => {
    ended.run(now, `uid-${id}`);
    endTask.run(id);
    endJob.run(now, id);
    release.run(`uid-${id}`);
    for (const kind of ['attempt.ended', 'task.ended', 'job.ended']) event.run(id, kind, now);
  };

  const began = performance.now();
  for (let first = 1; first <= count; first += BATCH) {
    for (const step of [place, starts, ends]) {
      transaction(() => {
        const now = Date.now();
        for (let id = first; id < first + BATCH && id <= count; id++) step(id, now);
      });
    }
  }
  const elapsedMs = performance.now() - began;
  const rows = countRows(db) / count;
  db.close();
  return { elapsedMs, rows };
}

function open(file: string): DatabaseSync {
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
    CREATE TABLE jobs (id INTEGER PRIMARY KEY, spec TEXT, ended INTEGER);
    CREATE TABLE tasks (id INTEGER PRIMARY KEY, job INTEGER, state TEXT, version INTEGER);
    CREATE TABLE attempts (uid TEXT PRIMARY KEY, task INTEGER, worker INTEGER, state TEXT,
      code INTEGER, assigned INTEGER, started INTEGER, ended INTEGER) WITHOUT ROWID;
    CREATE TABLE claims (uid TEXT PRIMARY KEY, worker INTEGER, cpu INTEGER) WITHOUT ROWID;
    CREATE TABLE events (seq INTEGER PRIMARY KEY, task INTEGER, kind TEXT, at INTEGER);
    CREATE INDEX task_of_job ON tasks (job);
    CREATE INDEX attempt_of_task ON attempts (task);
    CREATE INDEX event_of_task ON events (task);`);
  return db;
}

function insertPending(db: DatabaseSync, count: number, commit: (work: () => void) => void): void {
  const job = db.prepare("INSERT INTO jobs VALUES (?, '{}', NULL)");
  const task = db.prepare("INSERT INTO tasks VALUES (?, ?, 'PENDING', 1)");
  const event = db.prepare("INSERT INTO events (task, kind, at) VALUES (?, 'job.submitted', 0)");
  commit(() => {
    for (let id = 1; id <= count; id++) {
      job.run(id);
      task.run(id, id);
      event.run(id);
    }
  });
}

/** Rows of all tables of an open database. */
export function countRows(db: DatabaseSync): number {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  let rows = 0;
  for (const { name } of tables) {
    rows += Number(db.prepare(`SELECT count(*) AS n FROM "${String(name)}"`).get()?.['n'] ?? 0);
  }
  return rows;
}
