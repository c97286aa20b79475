/** Work through pools of a real Slurm: agents that take any work, and Slurm jobs sized for one. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SubmittedSpec } from '../../../src/protocol/jobSpec.ts';
import { slurmIsHere } from '../../support/slurm.ts';
import { startSlurmCluster, type SlurmCluster } from '../../support/slurmCluster.ts';
import { until } from '../../support/wait.ts';
import { createLedger, type Ledger } from './ledger.ts';

const GIB = 1024 ** 3;

describe.runIf(slurmIsHere())('pools of a real Slurm', () => {
  let cluster: SlurmCluster;
  let ledger: Ledger;
  const submit = (spec: Partial<SubmittedSpec>, seconds = 0.2): Promise<string> =>
    cluster.server.submit({ command: ledger.command(seconds), ...spec });
  const succeeded = async (...ids: string[]): Promise<void> => {
    for (const id of ids)
      expect(await cluster.server.ended(id, 60_000)).toMatchObject({ state: 'SUCCEEDED' });
  };
  /** Jobs of one pool, also those that are over. */
  const slurmJobs = async (pool: string) =>
    (await cluster.slurm.jobs()).filter(({ name }) => name.includes(`-${pool}.`));
  const noneLive = (pool: string): Promise<unknown> =>
    until(`nothing of ${pool} is left in the queue`, async () => {
      const live = await cluster.slurm.liveJobs();
      return !live.some(({ name }) => name.includes(`-${pool}.`));
    });

  beforeAll(async () => {
    const largestWorker = { cpus: 8, memoryBytes: 2 * GIB, gpus: 2 };
    const node = ['--gres=gpu:2', '--cpus-per-task=8', '--mem=2G'];
    cluster = await startSlurmCluster({
      pools: {
        agents: { max: 2, idleTimeoutMs: 3000, largestWorker, slurm: { options: node } },
        sized: { mode: 'job', max: 8, slurm: { template: 'job' } },
        gangs: { mode: 'job', max: 2, slurm: { template: 'gang' } },
      },
    });
    ledger = createLedger(path.join(cluster.slurm.root, 'ledger'));
  });
  afterAll(() => cluster?.close());

  test('agents take an array and a gang on GPUs, and go when they idle', async () => {
    const device = { count: 1 };
    const indices = [0, 1, 2, 3, 4, 5];
    const array = await submit({
      ...{ pool: 'agents', resources: { device }, shape: { kind: 'array', indices } },
    });
    const gang = await submit({
      ...{ pool: 'agents', resources: { device: { count: 2 } }, shape: { kind: 'gang', size: 2 } },
    });
    await succeeded(array, gang);
    ledger.check([
      { id: array, tasks: 6 },
      { id: gang, tasks: 2 },
    ]);
    expect(ledger.of(array, 'begin')).toHaveLength(6);
    for (const { devices } of ledger.of(array, 'begin')) expect(devices).toMatch(/^\d$/);
    for (const { devices } of ledger.of(gang, 'begin')) expect(devices).toMatch(/^\d,\d$/);
    // All of it in two allocations, which are given back.
    expect(await slurmJobs('agents')).toHaveLength(2);
    await noneLive('agents');
  });

  test('a job of its own size is one Slurm job, which ends with it', async () => {
    const resources = { cpuMillis: 3000, memoryBytes: GIB, device: { count: 2 } };
    const id = await submit({ pool: 'sized', name: 'alone', resources });
    await succeeded(id);
    ledger.check([{ id, tasks: 1 }]);
    expect(ledger.of(id, 'begin')).toHaveLength(1);
    await noneLive('sized');
    const [job, ...more] = await slurmJobs('sized');
    expect(more).toEqual([]);
    expect(job?.comment).toContain('alone');
    const shown = await cluster.slurm.ask('scontrol', 'show', 'job', job?.id ?? '');
    expect(shown).toMatch(/NumCPUs=3 .*CPUs\/Task=3/);
    expect(shown).toMatch(/MinMemoryNode=1G/);
    expect(shown).toMatch(/TresPerNode=gres:gpu:2/);
    expect(ledger.of(id, 'begin')[0]?.devices).toMatch(/^\d,\d$/);
  });

  test('an array is a Slurm array, a gang a Slurm job of several nodes', async () => {
    const device = { count: 1 };
    const array = await submit({
      ...{ pool: 'sized', resources: { device }, shape: { kind: 'array', indices: [3, 5, 7] } },
    });
    const gang = await submit({
      ...{ pool: 'gangs', resources: { device: { count: 2 } }, shape: { kind: 'gang', size: 2 } },
    });
    await succeeded(array, gang);
    ledger.check([
      { id: array, tasks: 3 },
      { id: gang, tasks: 2 },
    ]);
    expect([...ledger.of(array, 'begin'), ...ledger.of(gang, 'begin')]).toHaveLength(5);
    await noneLive('sized');
    await noneLive('gangs');
    const members = (await slurmJobs('sized')).filter(({ id }) => id.includes('_'));
    expect(members.map(({ id }) => id.replace(/^\d+/, '')).toSorted()).toEqual(['_0', '_1', '_2']);
    const [pair, ...more] = await slurmJobs('gangs');
    expect(more).toEqual([]);
    expect(pair?.nodes).toBe('n[1-2]');
  });

  test('what waits says for which Slurm job; cancelled, it leaves nothing behind', async () => {
    const resources = { device: { count: 2 } };
    const indices = [0, 1, 2, 3, 4];
    const id = await submit({ pool: 'sized', resources, shape: { kind: 'array', indices } }, 300);
    await until('three run', () => ledger.of(id, 'begin').length === 3);
    const why = await until('why names the Slurm job', async () => {
      const said = JSON.stringify(await cluster.server.client.why(id));
      return /Slurm job \d+_\d.*Resources/.test(said) && said;
    });
    expect(why).toContain('Slurm job');
    await cluster.server.client.cancelJob(id);
    expect(await cluster.server.ended(id)).toMatchObject({ state: 'CANCELLED' });
    await noneLive('sized');
    expect(ledger.of(id, 'done')).toEqual([]);
  });
});
