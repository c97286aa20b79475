/** The Slurm provider before a real Slurm of two nodes: every verb, and what goes wrong with it. */
import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ResourceRequest } from '../../src/model/resources.ts';
import type { Provider } from '../../src/providers/contract.ts';
import type { SlurmSite } from '../../src/providers/slurm/site.ts';
import { slurmIsHere, startSlurm, type Slurm } from '../support/slurm.ts';
import { batchOfJobs, createSlurmWorld, destroyed, launchedOf } from '../support/slurmProvider.ts';
import { machinesOf, seen, told, TOKEN, type SlurmWorld } from '../support/slurmProvider.ts';

const here = slurmIsHere();
let slurm: Slurm;
let world: SlurmWorld;
let site: SlurmSite;
let gpus: Provider;

const MIB = 1024 ** 2;
const twoGpus: ResourceRequest = {
  cpuMillis: 1500,
  memoryBytes: 100 * MIB,
  device: { kind: 'gpu', count: 2, share: 1000, models: [], memoryBytes: 0 },
  ports: 0,
};

beforeAll(async () => {
  if (!here) return;
  process.env['CONTROLLER_SECRET'] = 'must-not-travel';
  slurm = await startSlurm();
  world = createSlurmWorld(slurm);
  site = world.site('lab');
  gpus = world.pool(site, { partition: 'gpu' });
});
afterAll(async () => {
  delete process.env['CONTROLLER_SECRET'];
  await world?.close();
  await slurm?.close();
});

describe.runIf(here)('a job', () => {
  test('is sized, told who it is, listed and ended; no secret is shown or travels', async () => {
    const batch = batchOfJobs({ resources: twoGpus, timeLimitMs: 3_600_000, noticeMs: 60_000 });
    const { handles, script } = launchedOf(await gpus.launch(batch));
    const machine = await seen(gpus, batch.id, ({ phase }) => phase === 'running');
    expect(machine).toMatchObject({ handle: handles[0], host: 'n1', restarts: 0, billed: true });
    expect(machine.leftMs).toBeGreaterThan(3_600_000);
    expect(machine.leftMs).toBeLessThanOrEqual(3_600_000 + 360_000);

    const text = await told(gpus, machine);
    expect(text).toContain(`DROVER_JOIN_TOKEN=${TOKEN}`);
    expect(text).toContain(`DROVER_AGENT_INSTANCE=${batch.id}`);
    expect(text).toContain(`DROVER_AGENT_MACHINE=slurm:lab:${machine.handle}:0`);
    expect(text).toContain('DROVER_AGENT_HOST=n1');
    expect(text).toContain('DROVER_AGENT_RESOURCES=cpus=2,mem=100Mi');
    expect(text).toContain('CUDA_VISIBLE_DEVICES=0,1');
    expect(text).not.toContain('must-not-travel');

    expect(script).toContain('********');
    expect(script).not.toContain(TOKEN);
    const shown = await slurm.ask('scontrol', 'show', 'job', machine.handle);
    expect(shown).not.toContain(TOKEN);
    expect(shown).toMatch(/Comment=drover pool=gpus batch=i0test\w+ for md run/);

    await destroyed(gpus, [batch.id]);
    const gone = await seen(gpus, batch.id, ({ phase }) => phase === 'gone');
    expect(gone).toMatchObject({ failure: null, billed: false });
    expect(gone.reason).toMatch(/^CANCELLED: /);
  });

  test('several are one array; another pool and cluster does not see them', async () => {
    const batch = batchOfJobs({}, 3);
    const { handles } = launchedOf(await gpus.launch(batch));
    const id = handles[0]?.split('_')[0];
    expect(handles).toEqual([`${id}_0`, `${id}_1`, `${id}_2`]);
    const third = await seen(gpus, `${batch.id}.2`, ({ phase }) => phase === 'running');
    const text = await told(gpus, third);
    expect(text).toContain(`DROVER_JOIN_TOKEN=${TOKEN}_2`);
    expect(text).toContain(`DROVER_AGENT_INSTANCE=${batch.id}.2`);
    expect(text).toContain(`DROVER_AGENT_MACHINE=slurm:lab:${id}_2:0`);
    expect(await machinesOf(world.pool(site, {}, 'gpu'))).toEqual([]);

    await destroyed(gpus, [`${batch.id}.1`]);
    expect((await slurm.liveJobs()).map((job) => job.id).toSorted()).toEqual([
      `${id}_0`,
      `${id}_2`,
    ]);
    await destroyed(gpus, [`${batch.id}.0`, `${batch.id}.2`]);
    expect(await slurm.liveJobs()).toEqual([]);
  });

  test('of several workers has an agent on each node, each with its rank and share', async () => {
    const batch = batchOfJobs({ workers: 2, resources: twoGpus });
    launchedOf(await gpus.launch(batch));
    const machine = await seen(gpus, batch.id, ({ phase }) => phase === 'running');
    expect(machine).toMatchObject({ host: '', reason: 'RUNNING on n[1-2]' });
    const lines = (await told(gpus, machine, 2)).split('\n');
    const all = (name: string): string[] =>
      lines.filter((line) => line.startsWith(`DROVER_AGENT_${name}=`)).toSorted();
    const who = `DROVER_AGENT_MACHINE=slurm:lab:${machine.handle}`;
    expect(all('MACHINE')).toEqual([`${who}:0`, `${who}:1`]);
    expect(all('HOST')).toEqual(['DROVER_AGENT_HOST=n1', 'DROVER_AGENT_HOST=n2']);
    expect(new Set(all('RESOURCES'))).toEqual(new Set(['DROVER_AGENT_RESOURCES=cpus=2,mem=100Mi']));
    await destroyed(gpus, [batch.id]);
  });

  test('whose submission was not answered is found by its name, and not sent twice', async () => {
    const commandFolder = world.slowSbatch();
    const slow = world.site('slow', { commandFolder, commandTimeoutMs: 3000 });
    const pool = world.pool(slow);
    const batch = batchOfJobs();
    const lost = await pool.launch(batch);
    expect(lost).toMatchObject({ kind: 'unknown' });
    const machine = await seen(pool, batch.id, ({ phase }) => phase === 'running');
    const again = launchedOf(await pool.launch(batch));
    expect(again.handles).toEqual([machine.handle]);
    expect(again.script).toContain('********');
    const jobs = (await slurm.jobs()).filter(({ name }) => name.endsWith(batch.id));
    expect(jobs).toHaveLength(1);
    await destroyed(pool, [batch.id]);
  });

  test('that Slurm requeues keeps its id; one that is held says so; both end', async () => {
    const batch = batchOfJobs({}, 2);
    const { handles } = launchedOf(await gpus.launch(batch));
    const [first = '', second = ''] = handles;
    for (const { label } of batch.intents) {
      await seen(gpus, label, ({ phase }) => phase === 'running');
    }
    await slurm.ask('scontrol', 'requeue', first);
    await slurm.ask('scontrol', 'requeuehold', second);
    const again = await seen(gpus, `${batch.id}.0`, ({ restarts }) => restarts === 1);
    expect(again.handle).toBe(first);
    expect(['queued', 'ending']).toContain(again.phase);
    const held = await seen(gpus, `${batch.id}.1`, ({ phase }) => phase === 'queued');
    expect(held.reason).toMatch(/held.*: .*scontrol release/);
    await destroyed(
      gpus,
      batch.intents.map(({ label }) => label),
    );
    expect(await slurm.liveJobs()).toEqual([]);
  });

  test('that fails says why: its script, or its node', async () => {
    const ends = { agentCommand: 'exit 3' };
    const mine = world.pool(site, ends, 'broken');
    const theirs = world.pool(site, { agentCommand: 'exit 75' }, 'away');
    const [one, other] = [batchOfJobs(), batchOfJobs()];
    launchedOf(await mine.launch(one));
    launchedOf(await theirs.launch(other));
    const failed = await seen(mine, one.id, ({ phase }) => phase === 'gone');
    expect(failed).toMatchObject({ failure: 'WORKLOAD_FATAL' });
    expect(failed.reason).toBe('FAILED: its script ended with 3');
    const away = await seen(theirs, other.id, ({ phase }) => phase === 'gone');
    expect(away).toMatchObject({ failure: 'INFRA_FATAL' });
    // Nothing is left where the agents had their files.
    expect(readdirSync(world.folder).filter((name) => name.startsWith('drover-'))).toEqual([]);
  });

  test('keeps away from hosts, and from names that are no nodes here', async () => {
    const batch = batchOfJobs({ avoid: ['n1', 'elsewhere'] });
    launchedOf(await gpus.launch(batch));
    const machine = await seen(gpus, batch.id, ({ phase }) => phase === 'running');
    expect(machine.host).toBe('n2');
    const none = await gpus.launch(batchOfJobs({ avoid: ['n1', 'n2'] }));
    expect(none).toMatchObject({ kind: 'refused', refusal: 'capacity' });
    await destroyed(gpus, [batch.id]);
  });
});

describe.runIf(here)('what Slurm or a template refuses', () => {
  const configuration = (reason: RegExp) => ({
    ...{ kind: 'refused', refusal: 'configuration', retryAfterMs: expect.any(Number) },
    reason: expect.stringMatching(reason),
  });

  test.each([
    ['partition', { partition: 'nope' }, /invalid partition specified: nope.*sinfo/],
    ['account', { account: 'nobody-pays' }, /Invalid account.*slurm\.account/],
    ['reservation', { reservation: 'nope' }, /Requested reservation is invalid.*scontrol/],
    ['feature', { constraint: 'nope' }, /Invalid feature.*slurm\.constraint/],
    ['option', { options: ['--no-such-option=1'] }, /unrecognized option.*slurm\.options/],
    ['devices', { options: ['--gres=gpu:nope:1'] }, /not available.*gres/],
    ['template', { template: 'nope' }, /template nope does not render: .*there are: agents/],
    [
      'file',
      { template: '/nope/x.j2' },
      /template \/nope\/x\.j2 does not render: there is no such/,
    ],
  ])('an unknown %s', async (_, settings, reason) => {
    const batch = batchOfJobs();
    expect(await world.pool(site, settings).launch(batch)).toEqual(configuration(reason));
  });

  test.each([
    ['a misspelt variable', '#!/bin/sh\n{{ partitoin }}\n{{ start }}', /does not render: .*Line 2/],
    ['a syntax error', '#!/bin/sh\n{% if %}\n{{ start }}', /does not render: .*Line 2/],
    ['no interpreter', '\n#!/bin/sh\n{{ start }}', /must begin with #!/],
    ['no agent', '#!/bin/sh\nsleep 3', /starts no agent/],
  ])('a template with %s', async (name, text, reason) => {
    const template = world.file(`${name}.j2`, text);
    expect(await world.pool(site, { template }).launch(batchOfJobs())).toEqual(
      configuration(reason),
    );
  });

  test('no sbatch where it is looked for', async () => {
    const bare = world.site('bare', { commandFolder: '/nowhere' });
    const pool = world.pool(bare);
    expect(await pool.launch(batchOfJobs())).toEqual(configuration(/not there.*commandFolder/));
    expect(await pool.list()).toMatchObject({ kind: 'unknown' });
  });

  test('more time than the pool gives', async () => {
    const short = world.pool(site, { timeLimitMs: 60_000 });
    const result = await short.launch(batchOfJobs({ timeLimitMs: 120_000 }));
    expect(result).toEqual(configuration(/slurm\.timeLimitMs is 60000/));
  });

  test('nothing of all this is left in the queue', async () => {
    expect(await slurm.liveJobs()).toEqual([]);
  });
});
