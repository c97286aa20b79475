/** The store on PostgreSQL: killed under load; a controller deposed in its sleep. */
import pg from 'pg';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compareWithAcknowledged, forever, waiting } from '../../support/jobs.ts';
import { isAlive } from '../../support/processes.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { post, startSubmitters } from '../../support/submitters.ts';
import { until } from '../../support/wait.ts';

const ROUNDS = process.env['SOAK'] === '1' ? 20 : 3;
const TABLES = 'controller jobs tasks attempts claims workers tokens events'.split(' ');

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

const onPostgres = (url: string): Promise<TestServer> =>
  startServer({ env: { DROVER_STORE_KIND: 'postgres', DROVER_STORE_URL: url } });

/** As `drover up` does: the process ends with the store, and is started until it is ready again. */
async function startAgain(server: TestServer): Promise<void> {
  const { code, signal } = await server.process().ended;
  expect(code ?? signal).not.toBe(0);
  await until('the server is up again', () => server.start());
}

test(
  'killed and restarted under load: nothing acknowledged is lost, work goes on',
  async () => {
    const server = await onPostgres(await postgres.database());
    try {
      const agent = server.agent('a');
      await server.online(1);
      const { job, attempt } = await server.running(forever());
      const pid = await until('a pid', () => agent.taskPid(attempt.uid));
      const { url, token } = server;
      const load = startSubmitters({ url, token, count: 4, pauseMs: 5, spec: () => waiting() });
      for (let round = 0; round < ROUNDS; round++) {
        await delay(500 + Math.random() * 500);
        await postgres.kill();
        await postgres.start();
        await startAgain(server);
      }
      const before = load.acknowledged.size;
      await until('submits go on', () => load.acknowledged.size > before + 10);
      await load.finish();
      expect(load.surprises).toEqual([]);
      expect(await compareWithAcknowledged(server, load.acknowledged, 'load-')).toEqual([]);
      expect(await server.attempts(job)).toMatchObject([{ uid: attempt.uid, state: 'RUNNING' }]);
      expect(isAlive(pid)).toBe(true);
      console.log(`${ROUNDS} kills of PostgreSQL, ${load.acknowledged.size} jobs acknowledged`);
    } finally {
      await server.close();
    }
  },
  60_000 + ROUNDS * 15_000,
);

const END_SESSIONS =
  'SELECT pg_terminate_backend(pid) FROM pg_stat_activity ' +
  'WHERE datname = current_database() AND pid <> pg_backend_pid()';

/** Undefined: no answer. */
const CALLS = {
  submits: async (server: TestServer, n: number) =>
    (await post(server.url, server.token, `late-${n}`, JSON.stringify(waiting())))?.status,
  reads: async (server: TestServer) => {
    const headers = { authorization: `Bearer ${server.token}` };
    const reply = fetch(`${server.url}/v1/jobs`, { headers });
    return reply.then(({ status }) => status).catch(() => undefined);
  },
};

describe.each(['submits', 'reads'] as const)('a controller that was deposed', (kind) => {
  test(`wakes up to ${kind}: it answers none, changes nothing, ends`, async () => {
    const url = await postgres.database();
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    const old = await onPostgres(url);
    const first = await old.submit(waiting());
    old.process().send('SIGSTOP');
    await admin.query(END_SESSIONS);
    const successor = await until('the successor has the lock', () => onPostgres(url));
    try {
      const { epoch } = await successor.client.cluster();
      const rows = await dump(admin);
      // Sent while it sleeps, and answered, if at all, when it wakes.
      const calls = [1, 2, 3, 4, 5].map((n) => CALLS[kind](old, n));
      await delay(200);
      old.process().send('SIGCONT');
      const answers = await Promise.all(calls);
      expect(answers.filter((status) => status !== undefined && status < 500)).toEqual([]);
      expect((await old.process().ended).code).not.toBe(0);
      expect(await dump(admin)).toEqual(rows);
      expect((await successor.client.cluster()).epoch).toBe(epoch);
      expect((await successor.client.getJob(first)).state).toBe('PENDING');
      expect(await CALLS.submits(successor, 1)).toBe(201);
    } finally {
      await admin.end();
      await successor.close();
      await old.close();
    }
  });
});

test('a controller that lost its session ends at once instead of telling old news', async () => {
  const url = await postgres.database();
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const server = await onPostgres(url);
  try {
    await admin.query(END_SESSIONS);
    await until('it has ended', () => server.process().end());
    expect(server.process().end()?.code).not.toBe(0);
  } finally {
    await admin.end();
    await server.close();
  }
});

async function dump(client: pg.Client): Promise<Record<string, unknown[]>> {
  const rows: Record<string, unknown[]> = {};
  for (const table of TABLES) rows[table] = (await client.query(`SELECT * FROM ${table}`)).rows;
  return rows;
}
