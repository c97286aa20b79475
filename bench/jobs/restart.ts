/** Scenario 8: how long a controller with much to remember is away after a crash. */
import { startNoopAgents } from './agents/noop.ts';
import { DROVER_SYSTEM, DroverServer } from './servers/drover.ts';
import { folder, measure, type Bench } from './support/bench.ts';
import { until } from './support/measure.ts';

const AGENTS = 8;
const SIZES = { pending: 100_000, running: 5000 };
const QUICK_SIZES = { pending: 5000, running: 400 };
const FILL_LIMIT_MS = 300_000;

export async function restart(bench: Bench): Promise<void> {
  const { pending, running } = bench.quick ? QUICK_SIZES : SIZES;
  await measure(bench, DROVER_SYSTEM, ['restart'], async () => {
    const server = await DroverServer.start(folder(bench, 'drover'));
    const agents = await startNoopAgents(server, {
      agents: AGENTS,
      slots: running / AGENTS,
      behaviour: 'hold',
    });
    try {
      await server.drainLocalAgent();
      agents.go();
      await server.submitMany(running + pending);
      await until('the agents are full', FILL_LIMIT_MS, 50, async () => {
        const tasks = await server.tasks();
        return tasks.running === running && tasks.pending === pending;
      });
      const seconds = await server.crashAndRestart();
      const after = await server.tasks();
      const known = after.pending + after.assigned + after.running;
      if (known !== pending + running) throw new Error(`${known} tasks after the restart`);
      const note = `${pending} pending, ${running} running; after SIGKILL, from start to /readyz`;
      bench.report.add('restart', { ...DROVER_SYSTEM, value: seconds, note });
    } finally {
      await agents.close();
      await server.close();
    }
  });
}
