/** BullMQ on Redis. */
import { Queue, Worker } from 'bullmq';
import { startRedis } from '../servers/redis.ts';
import { PAYLOAD } from '../support/workload.ts';
import { WORKERS, type Rival } from './contract.ts';

const QUEUE = 'bench';
/** More in flight hides Redis's answer time; beyond this it gained nothing here. */
const CONCURRENCY = 32;

export const openAlways = (directory: string): Promise<Rival> => open(directory, 'always');
export const openEverysec = (directory: string): Promise<Rival> => open(directory, 'everysec');

async function open(directory: string, fsync: 'always' | 'everysec'): Promise<Rival> {
  const redis = await startRedis(directory, fsync);
  const connection = { host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null };
  const queue = new Queue(QUEUE, { connection });
  const workers: Worker[] = [];
  await queue.waitUntilReady();
  return {
    async addOne() {
      await queue.add('noop', PAYLOAD);
    },
    async addMany(count) {
      await queue.addBulk(Array.from({ length: count }, () => ({ name: 'noop', data: PAYLOAD })));
    },
    waiting: () => queue.getWaitingCount(),
    work: (count) =>
      new Promise((resolve, reject) => {
        let completed = 0;
        for (let i = 0; i < WORKERS; i++) {
          const worker = new Worker(QUEUE, async () => null, {
            connection,
            concurrency: CONCURRENCY,
          });
          worker.on('error', reject);
          // Emitted when Redis has stored the completion.
          worker.on('completed', () => {
            if (++completed === count) resolve();
          });
          workers.push(worker);
        }
      }),
    async close() {
      await Promise.all(workers.map((worker) => worker.close(true)));
      await queue.close();
      await redis.close();
    },
  };
}
