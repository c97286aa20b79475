/** Scenario 3: tasks that wait are placed, delivered, run as no-ops and completed, history kept. */
import { join } from 'node:path';
import { startNoopAgents } from './agents/noop.ts';
import { RIVALS, WORKERS, type RivalEntry } from './rivals/contract.ts';
import { BARE_SYSTEM } from './servers/bareClient.ts';
import { executeBare } from './servers/bareExecution.ts';
import { DROVER_SYSTEM, DroverServer } from './servers/drover.ts';
import { folder, measure, type Bench } from './support/bench.ts';
import { perSecond, until } from './support/measure.ts';
import { BATCH_SIZE } from './support/workload.ts';

/** Waiting tasks per measured second: more than any but the fastest finish in that time. */
const TASKS_PER_SECOND = 4000;
const DRAIN_LIMIT_MS = 600_000;
const DRAIN_PERIOD_MS = 20;
/** Of a full history: the job, its task, the attempt and an event for each of its moves. */
const LEAST_ROWS = 6;
/** Attempts an agent may have at once; the rivals prefetch as much. */
const SLOTS = 256;

export async function execute(bench: Bench): Promise<void> {
  const count = taskCount(bench);
  await measure(bench, BARE_SYSTEM, ['executeRate', 'executeRows'], async () => {
    const { elapsedMs, rows } = executeBare(join(folder(bench, 'bare'), 'bare.db'), count);
    const note = 'the SQL alone, no HTTP, no scheduler, batches of 250';
    bench.report.add('executeRate', { ...BARE_SYSTEM, value: (count / elapsedMs) * 1000, note });
    bench.report.add('executeRows', { ...BARE_SYSTEM, value: rows });
  });
  await measure(bench, DROVER_SYSTEM, ['executeRate', 'executeRows'], async () => {
    const server = await DroverServer.start(folder(bench, 'drover'));
    try {
      await server.drainLocalAgent();
      const before = server.rows();
      const value = await executeRate(server, count);
      const rows = (server.rows() - before) / count;
      if (rows < LEAST_ROWS) throw new Error(`${rows} rows per task: that is no full history`);
      const note = `${WORKERS} agents of ${SLOTS} slots over HTTP, full history`;
      bench.report.add('executeRate', { ...DROVER_SYSTEM, value, note });
      bench.report.add('executeRows', { ...DROVER_SYSTEM, value: rows });
    } finally {
      await server.close();
    }
  });
  for (const entry of RIVALS) {
    await measure(bench, entry, ['executeRate'], () => byWorkers(bench, entry, count));
  }
}

function taskCount(bench: Bench): number {
  return Math.ceil((bench.seconds * TASKS_PER_SECOND) / BATCH_SIZE) * BATCH_SIZE;
}

/** The agents' processes are up before the clock starts; joining and everything after counts. */
export async function executeRate(server: DroverServer, count: number): Promise<number> {
  const agents = await startNoopAgents(server, { agents: WORKERS, slots: SLOTS, behaviour: 'end' });
  try {
    await server.submitMany(count);
    return await perSecond(count, async () => {
      agents.go();
      await until('all tasks end', DRAIN_LIMIT_MS, DRAIN_PERIOD_MS, async () => {
        const { pending, assigned, running } = await server.tasks();
        return pending + assigned + running === 0;
      });
    });
  } finally {
    await agents.close();
  }
}

async function byWorkers(bench: Bench, entry: RivalEntry, count: number): Promise<void> {
  const rival = await entry.open(folder(bench, entry.system));
  try {
    for (let added = 0; added < count; added += BATCH_SIZE) await rival.addMany(BATCH_SIZE);
    const value = await perSecond(count, () => rival.work(count));
    const { system, durability } = entry;
    bench.report.add('executeRate', { system, durability, value, note: entry.workNote });
  } finally {
    await rival.close();
  }
}
