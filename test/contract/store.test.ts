/** One contract, two databases: what a store must do, on real SQLite and real PostgreSQL. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { unpackSpec } from '../../src/model/spec.ts';
import type { JobId } from '../../src/model/ids.ts';
import type { NotifyRule } from '../../src/model/jobParts.ts';
import { jobSpec } from '../../src/protocol/jobSpec.ts';
import { apply } from '../../src/state/apply.ts';
import { tellOfJob } from '../../src/state/notices.ts';
import { State } from '../../src/state/state.ts';
import type { Store } from '../../src/store/contract.ts';
import { checkSqliteVersion } from '../../src/store/dialects/sqlite.ts';
import { encodeBatch } from '../../src/store/encode.ts';
import { openHistory, openStore, type StoreSettings } from '../../src/store/open.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

interface Place {
  settings: StoreSettings;
  /** Runs SQL behind the store's back. */
  tamper(sql: string): Promise<void>;
}

let postgres: TestPostgres;
const folders: string[] = [];
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres.stop();
  for (const folder of folders) rmSync(folder, { recursive: true });
});

async function sqlitePlace(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-store-'));
  folders.push(folder);
  const file = join(folder, 'drover.db');
  return {
    settings: { kind: 'sqlite', file, cacheBytes: 1 << 20, checkpointPages: 1000 },
    async tamper(sql) {
      const db = new DatabaseSync(file);
      db.exec(sql);
      db.close();
    },
  };
}

async function postgresPlace(): Promise<Place> {
  const url = await postgres.database();
  return {
    settings: { kind: 'postgres', url },
    async tamper(sql) {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(sql);
      await client.end();
    },
  };
}

async function open(place: Place, nowMs = 1000): Promise<{ store: Store; state: State }> {
  const store = openStore(place.settings, () => undefined);
  return { store, state: new State(await store.boot(nowMs, 'ctest')) };
}

/** Commits everything the state has changed. */
async function flush(store: Store, state: State): Promise<void> {
  await store.commit(encodeBatch(state.takeChanges(), state.epoch, state.seq));
}

const spec = (name = 'a') =>
  jobSpec.parse({ name, command: ['true'], shape: { kind: 'array', indices: [1, 3] } });

function submit(state: State, key: string | null, count = 1): string[] {
  const result = apply(
    state,
    {
      kind: 'submit',
      tenant: 'one',
      owner: 'ann',
      submittingPrincipal: 'ann',
      links: [],
      specs: Array.from({ length: count }, (_, i) => spec(`job${i}`)),
      idempotencyKey: key,
      bodyHash: 'hash',
    },
    5000,
  );
  if (result.kind !== 'submitted') throw new Error(result.kind);
  return result.ids;
}

const rules = (notify: NotifyRule[]) =>
  jobSpec.parse({ command: ['true'], rules: { notify } }).rules!;

describe.each([
  ['sqlite', sqlitePlace],
  ['postgres', postgresPlace],
])('a store on %s', (kind, newPlace) => {
  test('what was committed is there after a restart, key and all', async () => {
    const place = await newPlace();
    const first = await open(place);
    const ids = submit(first.state, 'key', 2);
    await flush(first.store, first.state);
    await first.store.close();
    const second = await open(place, 6000);
    expect([...second.state.jobs.keys()].toSorted()).toEqual(ids);
    const live = [...second.state.jobs.values()][0];
    expect(live?.tasks.map((task) => task.index)).toEqual([1, 3]);
    expect(live?.job.spec).toEqual(spec('job0'));
    expect(submit(second.state, 'key', 2)).toEqual(ids);
    expect(second.state.seq).toBe(first.state.seq);
    await second.store.close();
  });

  test('notices wait until they are settled, tries and all', async () => {
    const place = await newPlace();
    const first = await open(place);
    const [id = ''] = submit(first.state, null);
    const live = first.state.jobs.get(id as JobId)!;
    live.job.spec.rules = rules([{ to: 'ops', on: ['started', 'failed'] }]);
    for (const kind of ['started', 'failed'] as const) {
      tellOfJob(first.state, live, kind, { reason: 'ünd\n', exitCode: null }, 5000);
    }
    await flush(first.store, first.state);
    const [one, two] = [...first.state.notices.queued.values()];
    const settled = { kind: 'settle-notice', reason: 'down' } as const;
    const again = { outcome: 'failed', nextTryAtMs: 9000 } as const;
    apply(first.state, { ...settled, ...again, id: one!.id }, 6000);
    apply(first.state, { ...settled, outcome: 'sent', id: two!.id }, 6000);
    await flush(first.store, first.state);
    await first.store.close();
    const second = await open(place, 6000);
    expect([...second.state.notices.queued.values()]).toEqual([
      { ...one, tries: 1, nextTryAtMs: 9000, lastError: 'down' },
    ]);
    await second.store.close();
  });

  test('a key older than a day is forgotten', async () => {
    const place = await newPlace();
    const first = await open(place);
    const ids = submit(first.state, 'key');
    await flush(first.store, first.state);
    await first.store.close();
    const later = await open(place, 5000 + 25 * 3600 * 1000);
    expect(submit(later.state, 'key')).not.toEqual(ids);
    await later.store.close();
  });

  test('epochs rise with every start, also when the clock went back', async () => {
    const place = await newPlace();
    const epochs: number[] = [];
    for (const nowMs of [1000, 500, 9000, 10]) {
      const { store, state } = await open(place, nowMs);
      epochs.push(state.epoch);
      await store.close();
    }
    expect(epochs).toEqual([1000, 1001, 9000, 9001]);
  });

  test('a deposed controller cannot write', async () => {
    const place = await newPlace();
    const { store, state } = await open(place);
    await place.tamper('UPDATE controller SET epoch = epoch + 1');
    submit(state, null);
    await expect(flush(store, state)).rejects.toThrow('taken over');
    const history = openHistory(place.settings);
    expect(await history.forTenant('one').jobs({ limit: 10 })).toEqual([]);
    await history.close();
    await store.close();
  });

  test('a second live controller is refused, and let in when the first has gone', async () => {
    const place = await newPlace();
    const { store } = await open(place);
    await expect(open(place)).rejects.toThrow('another controller is running');
    await store.close();
    const again = await open(place);
    await again.store.close();
  });

  test('a schema from a newer Drover is refused', async () => {
    const place = await newPlace();
    await (await open(place)).store.close();
    await place.tamper(
      kind === 'sqlite' ? 'PRAGMA user_version = 99' : 'INSERT INTO schema_version VALUES (99)',
    );
    await expect(open(place)).rejects.toThrow('schema version 99');
  });

  test('history answers by tenant, filter and page, newest first', async () => {
    const place = await newPlace();
    const { store, state } = await open(place);
    const ids = submit(state, null, 5);
    await flush(store, state);
    for (const id of ids.slice(0, 3)) {
      apply(state, { kind: 'cancel', job: id as never, by: 'ann' }, 7000);
    }
    const ended = state.changes;
    await flush(store, state);
    state.evict(ended);
    expect(state.jobs.size).toBe(2);
    const history = openHistory(place.settings);
    const mine = history.forTenant('one');
    const page = await mine.jobs({ limit: 2 });
    expect(page.map((row) => row.id)).toEqual(ids.toReversed().slice(0, 2));
    const next = await mine.jobs({ limit: 9, before: page[1]?.id ?? '' });
    expect(next.map((row) => row.id)).toEqual(ids.toReversed().slice(2));
    expect((await mine.jobs({ limit: 9, endState: 'CANCELLED' })).length).toBe(3);
    expect((await mine.jobs({ limit: 9, endState: 'SUCCEEDED' })).length).toBe(0);
    expect((await mine.jobs({ limit: 9, name: 'job4' })).map((row) => row.id)).toEqual([ids[4]]);
    expect((await mine.jobs({ limit: 9, owner: 'bob' })).length).toBe(0);
    expect(await mine.job(ids[0] ?? '')).toMatchObject({ end_state: 'CANCELLED', cancelled: 2 });
    expect((await mine.tasks(ids[0] ?? '', 1, 9)).map((row) => row.task_index)).toEqual([3]);
    const events = await mine.events(ids[0] ?? '', [0, 0], 9);
    expect(events.map((row) => row.kind)).toEqual([
      'job.submitted',
      'job.cancel-requested',
      'task.ended',
      'task.ended',
      'job.ended',
    ]);
    const theirs = history.forTenant('two');
    expect(await theirs.jobs({ limit: 9 })).toEqual([]);
    expect(await theirs.job(ids[0] ?? '')).toBeNull();
    expect(await theirs.events(ids[0] ?? '', [0, 0], 9)).toEqual([]);
    await history.close();
    await store.close();
  });

  test('any text comes back as it was', async () => {
    const place = await newPlace();
    const { store, state } = await open(place);
    const name = `'"\\;--\n\t🐑 {}[],NULL é\u0001`;
    const job = { ...spec(), name, env: { A: name } };
    apply(
      state,
      {
        kind: 'submit',
        tenant: name,
        owner: name,
        submittingPrincipal: '',
        links: [],
        specs: [job],
        idempotencyKey: name,
        bodyHash: null,
      },
      1,
    );
    await flush(store, state);
    const history = openHistory(place.settings);
    const [row] = await history.forTenant(name).jobs({ limit: 1, name });
    expect(row).toMatchObject({ name, tenant: name, owner: name });
    expect(unpackSpec(row?.spec ?? '')).toEqual(job);
    await history.close();
    await store.close();
  });
});

test('a SQLite older than 3.51.3 is refused at boot', () => {
  for (const old of ['3.51.2', '3.46.1', '2.9.9']) {
    expect(() => checkSqliteVersion(old)).toThrow(`SQLite ${old}`);
  }
  for (const fine of ['3.51.3', '3.52.0', '4.0.0']) checkSqliteVersion(fine);
});
