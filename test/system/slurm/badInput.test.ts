/**
 * Slurm pools that cannot work: each shows what is wrong and holds back, and those beside it go on.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PoolView } from '../../../src/protocol/pools.ts';
import { freePort } from '../../support/postgres.ts';
import { slurmIsHere } from '../../support/slurm.ts';
import { startSlurmCluster, type SlurmCluster } from '../../support/slurmCluster.ts';
import {
  sshdIsHere,
  startSshServers,
  type SshHost,
  type SshServers,
} from '../../support/sshServers.ts';
import { until } from '../../support/wait.ts';

const SIZE = ['--cpus-per-task=1', '--mem=500M'];
/** A template lies in no folder of Slurm's, which exists only once it is started. */
const TEMPLATE = '#!/bin/bash\n#SBATCH --job-name={{ nmae }}\n{{ start }}\n';

describe.runIf(slurmIsHere() && sshdIsHere())('Slurm pools that cannot work', () => {
  let cluster: SlurmCluster;
  let servers: SshServers;
  let login: SshHost;
  const pool = async (name: string): Promise<PoolView> => {
    const found = (await cluster.server.client.listPools()).find((one) => one.name === name);
    if (!found) throw new Error(`no pool ${name}`);
    return found;
  };
  const run = (name: string): Promise<string> =>
    cluster.server.submit({ command: ['true'], pool: name, resources: { cpuMillis: 500 } });
  const succeeds = async (name: string): Promise<void> => {
    const job = await cluster.server.ended(await run(name), 60_000);
    expect(job).toMatchObject({ state: 'SUCCEEDED' });
  };

  beforeAll(async () => {
    servers = startSshServers();
    login = await servers.host('login');
    const template = path.join(servers.folder, 'misspelt.sbatch.j2');
    writeFileSync(template, TEMPLATE);
    const { keyFile, knownHostsFile, user } = servers;
    const ssh = { host: '127.0.0.1', user, keyFile, knownHostsFile, configFile: '' };
    const one = (slurm: object) => ({ max: 1, slurm: { options: SIZE, ...slurm } });
    cluster = await startSlurmCluster({
      sites: {
        far: { ssh: { ...ssh, port: login.port } },
        nowhere: { ssh: { ...ssh, port: await freePort() } },
        bare: { commandFolder: '/nonexistent' },
      },
      pools: {
        good: one({}),
        template: one({ template }),
        partition: one({ partition: 'nope' }),
        account: one({ account: 'nobody-pays' }),
        nowhere: one({ site: 'nowhere' }),
        bare: one({ site: 'bare' }),
        far: one({ site: 'far' }),
      },
    });
    login.setLogin(`export SLURM_CONF='${cluster.slurm.conf}'`);
  });
  afterAll(async () => {
    await cluster?.close();
    await servers?.close();
  });

  /** What an operator reads, and whether it asks him to change something. */
  const WRONG: Record<string, RegExp> = {
    template: /misspelt\.sbatch\.j2 does not render: .*undefined/s,
    partition: /[Ii]nvalid partition/,
    account: /[Ii]nvalid account/,
    bare: /\/nonexistent\/(sbatch|squeue|scontrol|sinfo)/,
    nowhere: /127\.0\.0\.1.*(refused|unreachable|connect)/is,
  };

  test('each shows what is wrong, holds back and leaves the others alone', async () => {
    const jobs = new Map<string, string>();
    for (const name of Object.keys(WRONG)) jobs.set(name, await run(name));
    await succeeds('good');
    await succeeds('far');
    for (const [name, said] of Object.entries(WRONG)) {
      const view = await until(`pool ${name} says what is wrong`, async () => {
        const found = await pool(name);
        return said.test(`${found.error} ${found.listError}`) && found;
      });
      const holdsBack = view.notBeforeMs !== null && view.notBeforeMs > Date.now();
      expect(holdsBack || view.listError !== '', `${name}: ${view.error}`).toBe(true);
      const { sentence } = await cluster.server.client.why(jobs.get(name) ?? '');
      expect(sentence).toContain(`pool ${name}`);
      expect((await cluster.server.client.getJob(jobs.get(name) ?? '')).state).toBe('PENDING');
    }
    // Two worked, and nothing else was ever submitted.
    const names = (await cluster.slurm.jobs()).map(({ name }) =>
      name.replace(/^.*-(\w+)\..*$/, '$1'),
    );
    expect(names.toSorted()).toEqual(['far', 'good']);
  });

  test('a login node with another key is not spoken to until it is trusted', async () => {
    await login.changeKey();
    const view = await until('the pool says that the key has changed', async () => {
      const found = await pool('far');
      return /host key|HOST IDENTIFICATION|known_hosts/i.test(found.listError) && found;
    });
    expect(view.joined + view.coming).toBe(1);
    await succeeds('good');
    if (process.env['LONG'] !== '1') return;
    // Connections that failed are tried again later and later.
    servers.trust();
    await until('it answers', async () => (await pool('far')).listError === '', 60_000);
    await succeeds('far');
  });
});
