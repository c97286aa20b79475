/** graphile-worker on PostgreSQL, with what its own page on performance recommends. */
import { Logger, makeWorkerUtils, run, type Runner } from 'graphile-worker';
import { Pool } from 'pg';
import { startPostgres } from '../servers/postgres.ts';
import { until } from '../support/measure.ts';
import { CONNECTIONS, PAYLOAD } from '../support/workload.ts';
import { WORKERS, type Rival } from './contract.ts';

const DRAIN_LIMIT_MS = 30_000;
const logger = new Logger(() => () => undefined);

export async function openGraphile(directory: string): Promise<Rival> {
  const server = await startPostgres(directory);
  const pgPool = new Pool({ connectionString: server.url, max: CONNECTIONS });
  // A pool or client without a listener ends the process when the server goes first.
  pgPool.on('error', () => undefined);
  pgPool.on('connect', (client) => client.on('error', () => undefined));
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  let runner: Runner | undefined;
  return {
    async addOne() {
      await utils.addJob('noop', PAYLOAD);
    },
    async addMany(count) {
      await utils.addJobs(
        Array.from({ length: count }, () => ({ identifier: 'noop', payload: PAYLOAD })),
      );
    },
    async waiting() {
      const found = await pgPool.query(
        'select count(*)::int as n from graphile_worker._private_jobs',
      );
      return Number(found.rows[0]?.n);
    },
    async work(count) {
      const handled = counter(count);
      const preset = {
        worker: {
          concurrentJobs: WORKERS,
          localQueue: { size: 500 },
          completeJobBatchDelay: 0,
          logger,
        },
      };
      runner = await run({
        pgPool,
        preset,
        noHandleSignals: true,
        taskList: { noop: handled.one },
      });
      await handled.all;
      await until('graphile-worker stores its completions', DRAIN_LIMIT_MS, 5, async () => {
        const left = await pgPool.query('select 1 from graphile_worker._private_jobs limit 1');
        return left.rowCount === 0;
      });
    },
    async close() {
      await runner?.stop();
      await utils.release();
      await pgPool.end();
      await server.close();
    },
  };
}

function counter(count: number): { one: () => void; all: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let seen = 0;
  const one = (): void => {
    if (++seen === count) resolve();
  };
  return { one, all: promise };
}
