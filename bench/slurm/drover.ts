/** The same jobs, one submission each, on an agent that a Slurm pool booted on that node. */
import { setTimeout as delay } from 'node:timers/promises';
import type { TestServer } from '../../test/support/server.ts';
import type { Slurm } from '../../test/support/slurm.ts';
import { startSlurmCluster } from '../../test/support/slurmCluster.ts';
import type { Measured } from './main.ts';

const CALLS_AT_ONCE = 8;
const LOOK_MS = 20;
const WARM_UP = 20;
/** The node that the other half uses, whole. */
const NODE = {
  max: 1,
  largestWorker: { cpus: 16, memoryBytes: 4 * 1024 ** 3, gpus: 4 },
  slurm: { options: ['--nodelist=n1', '--cpus-per-task=16', '--gres=gpu:4', '--mem=4G'] },
};

export async function throughDrover(slurm: Slurm, jobs: number, gpus: number): Promise<Measured> {
  const cluster = await startSlurmCluster({ on: slurm, pools: { node: NODE } });
  const { server } = cluster;
  try {
    const begun = performance.now();
    // The first starts of an agent cost more than those that follow, on any machine.
    await runAll(server, WARM_UP, gpus);
    const bootedS = (performance.now() - begun) / 1000;
    const seconds = await runAll(server, jobs, gpus);
    const allocations = (await slurm.jobs()).filter(({ name }) => name.includes('-node.')).length;
    if (allocations !== 1) throw new Error(`it took ${allocations} allocations`);
    const note = `one allocation, whose agent came and did ${WARM_UP} jobs in`;
    return { seconds, note: `${note} ${bootedS.toFixed(1)} s` };
  } finally {
    await cluster.close();
  }
}

/** From the first submission until the last has succeeded. */
async function runAll(server: TestServer, jobs: number, gpus: number): Promise<number> {
  const device = gpus > 0 ? { count: gpus } : null;
  const spec = { command: ['true'], resources: { cpuMillis: 1000, device } };
  const before = (await ended(server)).size;
  const begun = performance.now();
  let next = 0;
  const ids: string[] = [];
  const submit = async (): Promise<void> => {
    while (next++ < jobs) ids.push(await server.submit(spec));
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, submit));
  while (!(await allEnded(server))) await delay(LOOK_MS);
  const seconds = (performance.now() - begun) / 1000;
  const succeeded = await ended(server);
  if (succeeded.size !== before + jobs || !ids.every((id) => succeeded.has(id))) {
    throw new Error(`${succeeded.size - before} of ${jobs} jobs succeeded`);
  }
  return seconds;
}

async function allEnded(server: TestServer): Promise<boolean> {
  for (const state of ['PENDING', 'RUNNING']) {
    const { items } = await server.client.listJobs({ state, limit: 1 });
    if (items.length > 0) return false;
  }
  return true;
}

async function ended(server: TestServer): Promise<Set<string>> {
  const { items } = await server.client.listJobs({ state: 'SUCCEEDED', limit: 500 });
  return new Set(items.map(({ id }) => id));
}
