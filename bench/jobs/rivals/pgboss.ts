/** pg-boss on PostgreSQL. */
import { Client } from 'pg';
import { PgBoss } from 'pg-boss';
import { startPostgres } from '../servers/postgres.ts';
import { until } from '../support/measure.ts';
import { CONNECTIONS, PAYLOAD } from '../support/workload.ts';
import { WORKERS, type Rival } from './contract.ts';

const QUEUE = 'bench';
const DRAIN_LIMIT_MS = 30_000;
const FETCH = 100;

export async function openPgBoss(directory: string): Promise<Rival> {
  const server = await startPostgres(directory);
  const boss = new PgBoss({ connectionString: server.url, max: CONNECTIONS });
  const failures: unknown[] = [];
  boss.on('error', (error) => failures.push(error));
  await boss.start();
  await boss.createQueue(QUEUE);
  const reader = new Client({ connectionString: server.url });
  await reader.connect();
  return {
    async addOne() {
      await boss.send(QUEUE, PAYLOAD);
    },
    async addMany(count) {
      await boss.insert(
        QUEUE,
        Array.from({ length: count }, () => ({ data: PAYLOAD })),
      );
    },
    async waiting() {
      const sql = `select count(*)::int as n from pgboss.job where name = $1 and state = 'created'`;
      return Number((await reader.query(sql, [QUEUE])).rows[0]?.n);
    },
    async work(count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      let handled = 0;
      const options = {
        batchSize: FETCH,
        localConcurrency: WORKERS,
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 0.5,
      };
      await boss.work(QUEUE, options, async (jobs) => {
        handled += jobs.length;
        if (handled >= count) resolve();
      });
      await promise;
      await until('pg-boss stores its completions', DRAIN_LIMIT_MS, 5, async () => {
        const open = `select 1 from pgboss.job where name = $1 and state < 'completed' limit 1`;
        return (await reader.query(open, [QUEUE])).rowCount === 0;
      });
      if (failures.length > 0) throw failures[0];
    },
    async close() {
      await reader.end();
      await boss.stop({ graceful: false });
      await server.close();
    },
  };
}
