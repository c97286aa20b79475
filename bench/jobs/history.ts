/** Scenario 7: what a million ended jobs in the store cost those that are submitted and run now. */
import { join } from 'node:path';
import { executeRate } from './execute.ts';
import { DROVER_SYSTEM, DroverServer, STORE_FILE } from './servers/drover.ts';
import { seedEndedJobs } from './servers/seed.ts';
import { submitRate } from './submit.ts';
import { folder, measure, type Bench } from './support/bench.ts';
import { percentile } from './support/measure.ts';

const ENDED_JOBS = 1_000_000;
const QUICK_ENDED_JOBS = 20_000;
/** Short measurements on both stores in turn: the machine's own ups and downs meet both. */
const ROUNDS = 5;
const TASKS = 10_000;
const SUBMIT = { seconds: 2, warmupSeconds: 0.5 };

type Rate = (server: DroverServer) => Promise<number>;

export async function history(bench: Bench): Promise<void> {
  const ended = bench.quick ? QUICK_ENDED_JOBS : ENDED_JOBS;
  await measure(bench, DROVER_SYSTEM, ['historySubmit', 'historyExecute'], async () => {
    const seeded = folder(bench, 'drover');
    await seedEndedJobs(join(seeded, STORE_FILE), ended);
    const servers: DroverServer[] = [];
    try {
      for (const directory of [folder(bench, 'drover'), seeded]) {
        const server = await DroverServer.start(directory);
        servers.push(server);
        await server.drainLocalAgent();
      }
      // Submits leave their jobs waiting, so they come last.
      const metrics: ['historyExecute' | 'historySubmit', Rate][] = [
        ['historyExecute', (server) => executeRate(server, TASKS)],
        ['historySubmit', (server) => submitRate(server, { ...bench, ...SUBMIT }, keys())],
      ];
      for (const [metric, rate] of metrics) {
        const [empty = 0, full = 0] = await inTurn(servers, rate);
        const note =
          `${Math.round(full)}/s with ${ended} ended jobs, ${Math.round(empty)}/s without: ` +
          `medians of ${ROUNDS} short measurements in turn`;
        bench.report.add(metric, { ...DROVER_SYSTEM, value: full / empty, note });
      }
    } finally {
      for (const server of servers) await server.close();
    }
  });
}

let loads = 0;
/** Each load has idempotency keys of its own. */
function keys(): string {
  return `history-${loads++}`;
}

/** The median of each server; a first round, in which everything is cold, does not count. */
async function inTurn(servers: DroverServer[], rate: Rate): Promise<number[]> {
  const rates = servers.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    const order = [...servers.keys()];
    if (round % 2 === 1) order.reverse();
    for (const n of order) {
      const value = await rate(servers[n]!);
      if (round > 0) rates[n]!.push(value);
    }
  }
  return rates.map((list) => percentile(list, 0.5));
}
