/** Fills a store with jobs that have ended, by the front door: batches and no-op agents. */
import type { DroverServer } from '../servers/drover.ts';
import { until } from '../support/measure.ts';
import { startNoopAgents } from './noop.ts';

const SLOTS = 512;
/** Waiting jobs are state in memory; more of them at once would only make seeding slower. */
const WAITING_LIMIT = 20_000;
const STEP = 10_000;
const STEP_LIMIT_MS = 120_000;

export async function seedEndedJobs(server: DroverServer, count: number): Promise<void> {
  const agents = await startNoopAgents(server, { agents: 8, slots: SLOTS, behaviour: 'end' });
  agents.go();
  const waiting = (limit: number) => async (): Promise<boolean> => {
    const { pending, assigned, running } = await server.tasks();
    return pending + assigned + running <= limit;
  };
  try {
    for (let left = count; left > 0; left -= STEP) {
      await server.submitMany(Math.min(left, STEP));
      await until('seeded jobs end', STEP_LIMIT_MS, 20, waiting(WAITING_LIMIT));
    }
    await until('the last seeded jobs end', STEP_LIMIT_MS, 20, waiting(0));
  } finally {
    await agents.close();
  }
}
