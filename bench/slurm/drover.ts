/** The same jobs, one submission each, on an agent that a Slurm pool booted on that node. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DROVER } from '../../test/support/processes.ts';
import { startServer, type TestServer } from '../../test/support/server.ts';
import type { Slurm } from '../../test/support/slurm.ts';
import type { Measured } from './main.ts';

const CALLS_AT_ONCE = 8;
const LOOK_MS = 20;

export async function throughDrover(slurm: Slurm, jobs: number, gpus: number): Promise<Measured> {
  const server = await startServer();
  try {
    const begun = performance.now();
    await bootAgent(slurm, server);
    const bootedS = (performance.now() - begun) / 1000;
    // The first starts of an agent cost more than those that follow, on any machine.
    await runAll(server, 20, gpus);
    const seconds = await runAll(server, jobs, gpus);
    await endAllocation(slurm);
    return { seconds, note: `the allocation's agent had joined after ${bootedS.toFixed(2)} s` };
  } finally {
    await server.close();
  }
}

async function bootAgent(slurm: Slurm, server: TestServer): Promise<void> {
  const script = path.join(slurm.root, 'agent.sh');
  const agent = [DROVER, 'agent', '--join', server.url, '--data', `${server.root}/agent`];
  const lines = ['#!/bin/bash', `exec ${agent.join(' ')} --resources cpus=16,mem=4Gi,gpus=4:A100`];
  writeFileSync(script, `${lines.join('\n')}\n`);
  const size = ['--nodelist=n1', '--cpus-per-task=16', '--gres=gpu:4', '--mem=4G'];
  const settings = ['--output', path.join(slurm.root, 'agent.log')];
  const secret = `--export=ALL,DROVER_JOIN_TOKEN=${server.joinToken}`;
  await slurm.ask('sbatch', ...size, ...settings, secret, script);
  await server.online(1);
}

async function endAllocation(slurm: Slurm): Promise<void> {
  for (const { id } of await slurm.liveJobs()) await slurm.ask('scancel', id);
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
