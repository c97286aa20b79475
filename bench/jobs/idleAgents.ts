/** Scenario 5: what 5,000 agents with nothing to do cost the server. */
import { DROVER_SYSTEM, DroverServer } from './servers/drover.ts';
import { folder, measure, type Bench } from './support/bench.ts';
import { sleep } from './support/measure.ts';
import { startScript, treeUsage } from './support/processes.ts';

const AGENTS = 5000;
const QUICK_AGENTS = 500;
/** Long enough for three rounds of long-polls of 10 s. */
const MEASURED_MS = 30_000;
/** Joining is over, and the garbage it left collected. */
const SETTLE_MS = 12_000;

export async function idleAgents(bench: Bench): Promise<void> {
  const agents = bench.quick ? QUICK_AGENTS : AGENTS;
  await measure(bench, DROVER_SYSTEM, ['idleCpu', 'idleMemory'], async () => {
    const server = await DroverServer.start(folder(bench, 'drover'));
    const args = [String(server.port), await server.joinToken(), String(agents)];
    const clients = startScript(new URL('agents/idleProcess.ts', import.meta.url), args);
    try {
      await clients.line(`joined ${agents}`);
      await sleep(SETTLE_MS);
      const before = treeUsage(server.pid);
      await sleep(MEASURED_MS);
      const after = treeUsage(server.pid);
      const cores = (after.cpuMs - before.cpuMs) / (after.atMs - before.atMs);
      const note = `${agents} agents, over ${MEASURED_MS / 1000} s, the whole process tree`;
      bench.report.add('idleCpu', { ...DROVER_SYSTEM, value: cores, note });
      const mebibytes = after.residentBytes / 2 ** 20;
      bench.report.add('idleMemory', { ...DROVER_SYSTEM, value: mebibytes, note });
      clients.say('stop');
      await clients.line('answered ');
    } finally {
      await clients.stop();
      await server.close();
    }
  });
}
