/**
 * What a site does to running work: nodes go, Slurm ends, requeues or forgets jobs, its controller
 * is away. All work is done in the end, each task once, and nothing of it stays in the queue.
 * LONG=1 keeps the controller away for a minute and waits until Slurm has ended an allocation.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SubmittedSpec } from '../../../src/protocol/jobSpec.ts';
import { slurmIsHere, type SlurmJob } from '../../support/slurm.ts';
import { startSlurmCluster, type SlurmCluster } from '../../support/slurmCluster.ts';
import { until } from '../../support/wait.ts';
import { createLedger, type Ledger } from './ledger.ts';

const LONG = process.env['LONG'] === '1';
const AWAY_MS = LONG ? 60_000 : 20_000;
const GIB = 1024 ** 3;
const CPU_ONLY = ['--cpus-per-task=2', '--mem=1G'];
const LIMIT_MS = 180_000;
/** More than fit into one allocation of a minute, of which the last half is kept free. */
const STEPS = 40;

describe.runIf(slurmIsHere())('faults of a real Slurm', { timeout: LIMIT_MS }, () => {
  let cluster: SlurmCluster;
  let ledger: Ledger;
  /** Begun before everything else, since Slurm counts time limits in minutes. */
  let timed: string;

  const submit = (seconds: number, spec: Partial<SubmittedSpec>): Promise<string> =>
    cluster.server.submit({ command: ledger.command(seconds), ...spec });
  const begun = (job: string, count = 1): Promise<unknown> =>
    until(`${count} of ${job} began`, () => ledger.of(job, 'begin').length >= count, 60_000);
  const live = async (pool: string): Promise<SlurmJob[]> =>
    (await cluster.slurm.liveJobs()).filter(({ name }) => name.includes(`-${pool}.`));
  const succeeds = async (id: string, tasks: number): Promise<void> => {
    const job = await cluster.server.ended(id, LIMIT_MS);
    expect(job).toMatchObject({ state: 'SUCCEEDED' });
    ledger.check([{ id, tasks }]);
    const counted = (await cluster.server.attempts(id)).filter(({ cause }) => cause === 'exited');
    expect(new Set(counted.map(({ task }) => task)).size).toBe(tasks);
    expect(counted).toHaveLength(tasks);
  };

  beforeAll(async () => {
    // So many cores that each node has room for one of them.
    const gpuNode = ['--gres=gpu:2', '--cpus-per-task=10', '--mem=1G'];
    const largestWorker = { cpus: 10, memoryBytes: GIB, gpus: 2 };
    const timedNode = [...CPU_ONLY, '--time=1', '--nodelist=n1'];
    cluster = await startSlurmCluster({
      // So that a dead node is noticed after seven seconds and not after fifteen.
      slurm: { slurmdTimeoutS: 3, settings: ['MessageTimeout=3'] },
      pools: {
        gpus: { max: 2, largestWorker, slurm: { options: gpuNode } },
        again: { max: 1, slurm: { options: [...CPU_ONLY, '--requeue'] } },
        timed: { max: 2, assumedJobMs: 1000, slurm: { options: timedNode } },
      },
    });
    ledger = createLedger(path.join(cluster.slurm.root, 'ledger'));
    const at = path.join(cluster.slurm.root, 'at');
    timed = await cluster.server.submit({ command: walk(at, STEPS), pool: 'timed', graceMs: 0 });
  });
  afterAll(() => cluster?.close());

  test('a requeue by Slurm itself is recognised: the same job brings the agent again', async () => {
    const job = await submit(8, { pool: 'again' });
    await begun(job);
    const [first] = await live('again');
    await cluster.slurm.ask('scontrol', 'requeue', first?.id ?? '');
    await succeeds(job, 1);
    const all = (await cluster.slurm.jobs()).filter(({ name }) => name.includes('-again.'));
    expect(all).toMatchObject([{ id: first?.id, restarts: 1 }]);
    expect((await cluster.server.attempts(job)).length).toBeGreaterThan(1);
  });

  test('a node that goes down and a node that dies: other machines come', async () => {
    const worksOnN2 = (): Promise<unknown> =>
      until(
        'something runs on n2',
        async () => {
          const { items } = await cluster.server.client.listWorkers({});
          return items.some(({ host, pool, attempts }) => {
            return host === 'n2' && pool === 'gpus' && attempts > 0;
          });
        },
        60_000,
      );
    const indices = Array.from({ length: 14 }, (_, index) => index);
    const resources = { device: { count: 1 } };
    const job = await submit(3, { pool: 'gpus', resources, shape: { kind: 'array', indices } });
    await worksOnN2();
    await cluster.slurm.downNode('n2');
    await cluster.slurm.resumeNode('n2');
    await delay(1000);
    await worksOnN2();
    await cluster.slurm.crashNode('n2');
    await until('n2 is down', async () => /down/.test(await cluster.slurm.nodeState('n2')), 60_000);
    await cluster.slurm.startSlurmd('n2');
    await succeeds(job, indices.length);
    const attempts = await cluster.server.attempts(job);
    expect(attempts.length).toBeGreaterThanOrEqual(indices.length + 2);
  });

  test('slurmctld is away while work runs: it goes on, and nothing is launched twice', async () => {
    const resources = { device: { count: 2 } };
    const job = await submit(8, { pool: 'gpus', resources });
    await begun(job);
    const before = await live('gpus');
    await cluster.slurm.stopController();
    const away = delay(AWAY_MS);
    await succeeds(job, 1);
    expect(await cluster.server.attempts(job)).toHaveLength(1);
    // Asked for while nobody answers: it waits, and comes once.
    const later = await submit(0.2, { pool: 'again' });
    await away;
    await cluster.slurm.startController();
    await succeeds(later, 1);
    expect((await live('gpus')).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  });

  test('a time limit ends an allocation: the work goes on in the next one', async () => {
    expect(await cluster.server.ended(timed, LIMIT_MS)).toMatchObject({ state: 'SUCCEEDED' });
    const allocations = async (): Promise<SlurmJob[]> =>
      (await cluster.slurm.jobs()).filter(({ name }) => name.includes('-timed.'));
    expect((await allocations()).length).toBeGreaterThan(1);
    const attempts = await cluster.server.attempts(timed);
    expect(attempts.length).toBeGreaterThan(1);
    expect(new Set(attempts.map(({ worker }) => worker)).size).toBe(attempts.length);
    // Stopped in time by Drover, on the node that other tests left alone.
    const causes = attempts.slice(0, -1).map(({ cause }) => cause);
    expect(new Set(causes)).toEqual(new Set(['preempted']));
    const steps = (await cluster.server.stdout(timed)).trim().split('\n').map(Number);
    expect(new Set(steps).size).toBe(STEPS);
    expect(steps.length).toBeLessThan(STEPS + attempts.length);
    if (!LONG) return;
    // Nobody but Slurm ends them, which looks at its limits twice a minute.
    const over = async (): Promise<boolean> =>
      (await allocations()).some(({ state }) => state === 'TIMEOUT');
    await until('Slurm has ended the first', over, 120_000);
  });
});

/** So many steps of a second, each saved in the site's file system as most jobs there do. */
function walk(file: string, steps: number): string[] {
  const script = `
at=$(cat "$0" 2>/dev/null || echo 0)
while [ "$at" -lt "$1" ]; do
  sleep 1
  at=$((at + 1))
  echo "$at" >"$0.tmp"
  mv "$0.tmp" "$0"
  echo "$at"
done
`;
  return ['sh', '-c', script, file, String(steps)];
}
