/** A Slurm site as others have it: maintenance, other people's jobs and accounts, ssh, outages. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SlurmSiteSettings } from '../../src/model/slurmSettings.ts';
import type { Provider } from '../../src/providers/contract.ts';
import type { SlurmSite } from '../../src/providers/slurm/site.ts';
import { slurmIsHere, startSlurm, type Slurm } from '../support/slurm.ts';
import { batchOfJobs, createSlurmWorld, destroyed, launchedOf } from '../support/slurmProvider.ts';
import { machinesOf, seen, told, type SlurmWorld } from '../support/slurmProvider.ts';
import {
  sshdIsHere,
  startSshServers,
  type SshHost,
  type SshServers,
} from '../support/sshServers.ts';
import { until } from '../support/wait.ts';
import { providerContract } from '../contract/provider.contract.ts';

const here = slurmIsHere();
const HOUR = 3_600_000;
let slurm: Slurm;
let world: SlurmWorld;
let site: SlurmSite;
let gpus: Provider;

const behindSsh = here && sshdIsHere();
let servers: SshServers;
let host: SshHost;
const ssh = (more: Partial<NonNullable<SlurmSiteSettings['ssh']>> = {}) => ({
  ...{ host: '127.0.0.1', port: host.port, user: servers.user, keyFile: servers.keyFile },
  ...{ proxyJump: '', knownHostsFile: servers.knownHostsFile, configFile: '', ...more },
});

beforeAll(async () => {
  if (!here) return;
  slurm = await startSlurm({ settings: ['MessageTimeout=2'] });
  world = createSlurmWorld(slurm);
  site = world.site('lab');
  gpus = world.pool(site, { partition: 'gpu' });
  if (!behindSsh) return;
  servers = startSshServers();
  host = await servers.host('login');
  host.setLogin('echo "<html>Welcome! Maintenance on Monday.</html>"; echo motd >&2');
});
afterAll(async () => {
  await world?.close();
  await servers?.close();
  await slurm?.close();
});

const reserve = (name: string, start: string, ...more: string[]): Promise<string> =>
  slurm.ask(
    ...['scontrol', 'create', 'reservation', `reservationname=${name}`, `starttime=${start}`],
    ...['duration=120', 'users=root', 'nodes=ALL', ...more],
  );

describe.runIf(here)('maintenance', () => {
  test('that comes shortens what is asked for, or keeps work away until it is over', async () => {
    await reserve('upgrade', 'now+3600', 'flags=maint,ignore_jobs');
    try {
      const any = batchOfJobs();
      launchedOf(await gpus.launch(any));
      const machine = await seen(gpus, any.id, ({ phase }) => phase === 'running');
      expect(machine.leftMs).toBeLessThan(HOUR);
      expect(machine.leftMs).toBeGreaterThan(HOUR - 300_000);
      await destroyed(gpus, [any.id]);

      const long = await gpus.launch(batchOfJobs({ timeLimitMs: 2 * HOUR }));
      expect(long).toMatchObject({ kind: 'refused', refusal: 'capacity' });
      if (long.kind !== 'refused') return;
      expect(long.reason).toMatch(/^maintenance upgrade \(\S+Z to \S+Z\) begins too soon$/);
      expect(long.retryAfterMs / HOUR).toBeCloseTo(3, 1);

      const fresh = await world.pool(site, { partition: 'gpu' }).list();
      expect(fresh).toMatchObject({ notice: expect.stringMatching(/^maintenance upgrade/) });
    } finally {
      await slurm.ask('scontrol', 'delete', 'reservationname=upgrade');
    }
  });

  test('jobs stay inside the reservation of their pool', async () => {
    await reserve('course', 'now');
    try {
      const during = await gpus.launch(batchOfJobs());
      expect(during).toMatchObject({
        refusal: 'capacity',
        reason: expect.stringMatching(/^course .*has all nodes$/),
      });
      const inside = world.pool(site, { reservation: 'course', timeLimitMs: 10 * HOUR }, 'course');
      const batch = batchOfJobs();
      launchedOf(await inside.launch(batch));
      const machine = await seen(inside, batch.id, ({ phase }) => phase === 'running');
      expect(machine.leftMs).toBeLessThan(2 * HOUR);
      await destroyed(inside, [batch.id]);
    } finally {
      await until('the reservation is empty', async () => {
        const result = await slurm.run(['scontrol', 'delete', 'reservationname=course']);
        return result.code === 0;
      });
    }
  });
});

describe.runIf(here)('other people', () => {
  test("a pool that observes shows the site's jobs, and submits none", async () => {
    const args = ['--parsable', '--job-name=weird|name', '--hold', '--gres=gpu:1', '--wrap=true'];
    const id = await slurm.ask('sbatch', ...args);
    const watcher = world.pool(site, { observeOnly: true }, 'watch');
    const listing = await watcher.list();
    expect(listing).toMatchObject({ kind: 'known', machines: [] });
    if (listing.kind !== 'known') return;
    expect(listing.others?.find(({ handle }) => handle === id)).toEqual({
      ...{ handle: id, name: 'weird|name', user: 'root', state: 'PENDING', reason: 'JobHeldUser' },
      where: 'gpu, 1 node, gres:gpu:1',
    });
    const refused = await watcher.launch(batchOfJobs());
    expect(refused).toMatchObject({
      refusal: 'configuration',
      reason: expect.stringMatching(/only observes/),
    });
    await slurm.ask('scancel', id);
  });

  const rootOnly = process.getuid?.() === 0;
  test.runIf(rootOnly)(
    "a job runs as its user's Unix account, and who has none is refused",
    async () => {
      const users = { 'physics/ada': 'games', 'chemistry/*': 'no-such-account' };
      const mapped = world.site('mapped', { become: 'runuser', users });
      const pool = world.pool(
        mapped,
        { userMap: 'submit-as-user', folder: '', scratch: '' },
        'each',
      );
      const home = spawnSync('sh', ['-c', 'echo ~games']).stdout.toString().trim();
      const folder = `${world.folder}/games`;
      spawnSync('install', ['-d', '-o', 'games', folder]);
      const own = world.pool(
        mapped,
        { userMap: 'submit-as-user', folder, scratch: folder },
        'each',
      );
      expect(home).not.toBe('');
      const batch = batchOfJobs({ runAs: { tenant: 'physics', user: 'ada' } });
      launchedOf(await own.launch(batch));
      const machine = await seen(own, batch.id, ({ phase }) => phase === 'running');
      expect(await slurm.ask('squeue', '-h', '-o', '%u', '-j', machine.handle)).toBe('games');
      await told(own, machine);
      await destroyed(own, [batch.id]);

      const nobody = await pool.launch(batchOfJobs({ runAs: { tenant: 'physics', user: 'bob' } }));
      expect(nobody).toMatchObject({
        refusal: 'configuration',
        reason: expect.stringMatching(/physics\/bob has no Unix/),
      });
      const anybody = await pool.launch(batchOfJobs());
      expect(anybody).toMatchObject({
        refusal: 'configuration',
        reason: expect.stringMatching(/mode to job/),
      });
      const absent = await pool.launch(batchOfJobs({ runAs: { tenant: 'chemistry', user: 'c' } }));
      expect(absent).toMatchObject({
        refusal: 'configuration',
        reason: expect.stringMatching(/no-such-account.*users/),
      });
    },
  );
});

describe.runIf(behindSsh)('a site behind ssh', () => {
  test('one connection serves all its pools, in spite of what the login prints', async () => {
    const far = world.site('far', { ssh: ssh() });
    const pools = ['a', 'b', 'c'].map((name) => world.pool(far, { folder: '~/out' }, name));
    const batch = batchOfJobs({}, 2);
    const [first] = pools;
    if (!first) return;
    launchedOf(await first.launch(batch));
    const listings = await Promise.all(pools.map((pool) => machinesOf(pool)));
    expect(listings.map((machines) => machines.length)).toEqual([2, 0, 0]);
    const machine = await seen(first, `${batch.id}.1`, ({ phase }) => phase === 'running');
    expect(await told(first, machine)).toContain(`DROVER_AGENT_INSTANCE=${batch.id}.1`);
    expect(host.log().match(/Accepted publickey/g)).toHaveLength(1);

    // The login node goes away: nothing is known, and nothing is thought gone.
    await host.stop();
    expect(await first.list()).toMatchObject({ kind: 'unknown' });
    const away = await first.launch(batchOfJobs());
    expect(away).toMatchObject({ kind: 'refused', refusal: 'unreachable' });
    await host.start();
    const back = await until('it is reached again', async () => {
      const listing = await first.list();
      return listing.kind === 'known' ? listing.machines : undefined;
    });
    expect(back.filter(({ phase }) => phase === 'running')).toHaveLength(2);
    await destroyed(
      first,
      batch.intents.map(({ label }) => label),
    );
  });

  test('a connection that breaks mid-submission leaves it unknown; it is found later', async () => {
    const commandFolder = world.slowSbatch();
    const pool = world.pool(world.site('breaking', { ssh: ssh(), commandFolder }), {}, 'breaking');
    const batch = batchOfJobs();
    const launch = pool.launch(batch);
    const isThere = ({ name }: { name: string }): boolean => name.endsWith(`.${batch.id}`);
    await until('it is in the queue', async () => (await slurm.jobs()).some(isThere));
    await host.stop();
    expect(await launch).toMatchObject({ kind: 'unknown' });
    expect(await pool.launch(batch)).toMatchObject({ kind: 'unknown' });
    await host.start();
    const again = await until('the same is answered', async () => {
      const result = await pool.launch(batch);
      return result.kind === 'launched' ? result : undefined;
    });
    const [machine] = await machinesOf(pool);
    expect(again.handles).toEqual([machine?.handle]);
    expect((await slurm.jobs()).filter(isThere)).toHaveLength(1);
    await destroyed(pool, [batch.id]);
  });

  test('a user can have a connection of its own', async () => {
    const [own, users] = [ssh(), { 'physics/ada': servers.user }];
    const far = world.site('own', { ssh: own, become: 'login', users });
    const pool = world.pool(far, { userMap: 'submit-as-user' }, 'own');
    const before = host.log().match(/Accepted publickey/g)?.length ?? 0;
    const batch = batchOfJobs({ runAs: { tenant: 'physics', user: 'ada' } });
    launchedOf(await pool.launch(batch));
    await destroyed(pool, [batch.id]);
    // Ours, which looks, and the user's, which submits.
    expect(host.log().match(/Accepted publickey/g)).toHaveLength(before + 2);
  });

  test('says what is wrong with a key of ours, and with a key of the host', async () => {
    const other = `${servers.folder}/other`;
    rmSync(other, { force: true });
    spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', other]);
    const stranger = world.pool(world.site('stranger', { ssh: ssh({ keyFile: other }) }));
    const denied = await stranger.launch(batchOfJobs());
    expect(denied).toMatchObject({
      refusal: 'configuration',
      reason: expect.stringMatching(/does not take the key/),
    });

    await host.changeKey();
    const changed = world.pool(world.site('changed', { ssh: ssh() }));
    const result = await changed.launch(batchOfJobs());
    expect(result).toMatchObject({
      refusal: 'configuration',
      reason: expect.stringMatching(/host key is not the one/),
    });
    expect(await changed.list()).toMatchObject({
      kind: 'unknown',
      reason: expect.stringMatching(/host key/),
    });
    // The other site goes on.
    expect(await gpus.list()).toMatchObject({ kind: 'known' });
  });
});

// Last, and without ssh, which makes each of its many looks slower.
if (behindSsh) {
  providerContract('Slurm', async () => ({
    open: (clusterId) => world.pool(site, {}, 'contract', clusterId),
    patienceMs: 20_000,
    async breakDown() {
      await slurm.stopController();
      return () => slurm.startController();
    },
    refusing: {
      configuration: (id) => world.pool(site, { partition: 'nope' }, 'contract', id),
      unreachable: (id) => {
        const nowhere = world.site('nowhere', { ssh: ssh({ port: 1 }) });
        return world.pool(nowhere, {}, 'contract', id);
      },
    },
    async close() {
      expect(await slurm.liveJobs()).toEqual([]);
    },
  }));
}
