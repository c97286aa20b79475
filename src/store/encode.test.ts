/** From changes to rows and back: which form a row takes, and that nothing is lost. */
import { describe, expect, test } from 'vitest';
import { TestState } from '../../test/support/testState.ts';
import type { AttemptUid } from '../model/ids.ts';
import type { TableWrites, Value } from './contract.ts';
import { decodeAttempt, decodeClaim, decodeJob, decodeTask } from './decode.ts';
import { decodeWorker } from './machineRows.ts';
import { encodeBatch } from './encode.ts';
import { rowWidth, TABLES, TABLE_NAMES, type TableName } from './tables.ts';

function batchOf(it: TestState) {
  const { state } = it;
  return encodeBatch(state.takeChanges(), state.epoch, state.seq);
}

/** A batch's rows as objects, by the names of their columns. */
function rows(writes: TableWrites | undefined, name: TableName, form: 'inserts' | 'updates') {
  const { key, fixed, mutable } = TABLES[name];
  const columns = form === 'inserts' ? [...key, ...fixed, ...mutable] : [...mutable, ...key];
  const values = writes?.[form] ?? [];
  const found: Record<string, Value>[] = [];
  for (let at = 0; at < values.length; at += columns.length) {
    found.push(Object.fromEntries(columns.map((column, i) => [column, values[at + i] ?? null])));
  }
  return found;
}

/** How many rows of each form a table has. */
function forms(batch: ReturnType<typeof encodeBatch>, name: TableName): number[] {
  const writes = batch.tables[name];
  if (!writes) return [0, 0, 0, 0];
  return [
    writes.fresh.length / rowWidth(name, 'fresh'),
    writes.inserts.length / rowWidth(name, 'insert'),
    writes.updates.length / Math.max(1, rowWidth(name, 'update')),
    writes.deletes.length / rowWidth(name, 'delete'),
  ];
}

describe('a batch', () => {
  test('holds whole rows of every table it touches', () => {
    const it = new TestState();
    const worker = it.join('m1');
    it.run(...it.assign(it.submit(), worker));
    const batch = batchOf(it);
    expect(batch).toMatchObject({ epoch: it.state.epoch, seq: it.state.seq });
    for (const name of TABLE_NAMES) {
      for (const count of forms(batch, name)) expect(Number.isInteger(count), name).toBe(true);
    }
    expect(Object.keys(batch.tables).toSorted()).toEqual([
      'attempts',
      'audit_heads',
      'claims',
      'events',
      'jobs',
      'tasks',
      'workers',
    ]);
  });

  test('of nothing has no tables', () => {
    expect(batchOf(new TestState()).tables).toEqual({});
  });

  test('a job that nobody has touched since it was made is fresh, later it is an update', () => {
    const it = new TestState();
    const live = it.submit();
    const first = batchOf(it);
    expect([forms(first, 'jobs'), forms(first, 'tasks')]).toEqual([
      [1, 0, 0, 0],
      // A task that has only waited follows from its job.
      [0, 0, 0, 0],
    ]);
    it.apply({ kind: 'cancel', job: live.job.id, by: 'ann' });
    const batch = batchOf(it);
    expect([forms(batch, 'jobs'), forms(batch, 'tasks')]).toEqual([
      [0, 0, 1, 0],
      [0, 1, 0, 0],
    ]);
    expect(rows(batch.tables.jobs, 'jobs', 'updates')).toMatchObject([
      { id: live.job.id, tenant: 'default', end_state: 'CANCELLED', cancelled: 1, failed: 0 },
    ]);
  });

  test('a row that was made and changed in one batch is inserted as it is', () => {
    const it = new TestState();
    const live = it.submit();
    it.apply({ kind: 'cancel', job: live.job.id, by: 'ann' });
    const batch = batchOf(it);
    expect(forms(batch, 'tasks')).toEqual([0, 1, 0, 0]);
    expect(rows(batch.tables.tasks, 'tasks', 'inserts')).toMatchObject([{ state: 'CANCELLED' }]);
  });

  test('a claim that came and went in one batch was never there; a later end deletes it', () => {
    const it = new TestState();
    const worker = it.join('m1');
    const [first] = it.assign(it.submit(), worker);
    it.exit(first!, 0);
    const [second] = it.assign(it.submit(), worker);
    expect(forms(batchOf(it), 'claims')).toEqual([0, 1, 0, 0]);
    it.exit(second!, 0);
    const batch = batchOf(it);
    expect(forms(batch, 'claims')).toEqual([0, 0, 0, 1]);
    expect(batch.tables.claims?.deletes).toEqual([second]);
  });
});

test('rows decode to what was encoded', () => {
  const it = new TestState();
  const worker = it.join('m1', { attributes: { zone: 'a' } });
  const live = it.submit({
    shape: { kind: 'gang', size: 2 },
    resources: { ports: 2, device: { share: 500 } },
    env: { A: 'ü' },
  });
  const uids = it.assign(live, worker);
  it.run(...uids);
  it.exit(uids[0]!, 0);
  it.apply({ kind: 'drain', worker, draining: true, by: 'ann', tenant: 'default' });
  const attempt = it.state.attempts.get(uids[1]!)!;
  const { tables } = batchOf(it);
  const decoded = <Row, Entity>(name: TableName, decode: (row: Row) => Entity): Entity[] =>
    rows(tables[name], name, 'inserts').map((row) => decode(row as Row));
  expect(decoded('tasks', decodeTask)).toEqual(live.tasks);
  expect(decoded('workers', decodeWorker)).toEqual([it.state.workers.get(worker)?.worker]);
  expect(decoded('attempts', decodeAttempt).find(({ uid }) => uid === attempt.uid)).toEqual(
    attempt,
  );
  expect(decoded('claims', decodeClaim)).toEqual([it.state.claims.get(uids[1] as AttemptUid)]);
  const [job] = rowsOfFresh(tables.jobs, 'jobs');
  expect(decodeJob({ ...FRESH_JOB, ...job } as never)).toEqual(live.job);
});

/** What the schema gives a job's row by default. */
const FRESH_JOB = {
  parent: null,
  root: null,
  priority: null,
  round: 0,
  cancel_requested_at_ms: null,
  cancelled_by: null,
  ended_at_ms: null,
  spent_micros: 0,
  version: 1,
};

function rowsOfFresh(writes: TableWrites | undefined, name: TableName) {
  const columns = [...TABLES[name].key, ...TABLES[name].fixed];
  const values = writes?.fresh ?? [];
  const found: Record<string, Value>[] = [];
  for (let at = 0; at < values.length; at += columns.length) {
    found.push(Object.fromEntries(columns.map((column, i) => [column, values[at + i] ?? null])));
  }
  return found;
}
