/** A real Slurm that nobody but a connector on its login node can talk to. */
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PoolView } from '../../../src/protocol/pools.ts';
import { createConnector, type TestConnector } from '../../support/connectors.ts';
import { shell } from '../../support/jobs.ts';
import { slurmIsHere } from '../../support/slurm.ts';
import { startSlurmCluster, type SlurmCluster } from '../../support/slurmCluster.ts';
import { until } from '../../support/wait.ts';

const NOWHERE = 'http://127.0.0.1:9';

describe.runIf(slurmIsHere())('a pool whose site is reached by a connector', () => {
  let cluster: SlurmCluster;
  let connector: TestConnector;
  let token: string;

  beforeAll(async () => {
    connector = await createConnector('far', () => ({
      ...{ ...cluster.slurm.env(), DROVER_JOIN_TOKEN: token },
    }));
    const options = ['--cpus-per-task=2', '--mem=1G'];
    cluster = await startSlurmCluster({
      sites: { far: { connector: true, connectorUrl: connector.url } },
      pools: { far: { max: 1, idleTimeoutMs: 1000, slurm: { site: 'far', options } } },
      // Neither the controller nor the nodes have another way.
      env: { SLURM_CONF: '/nowhere', DROVER_FLEET_AGENT_URL: NOWHERE },
    });
  });
  afterAll(async () => {
    try {
      await cluster?.close();
    } finally {
      await connector?.process().stop();
    }
  });

  test('with a connector a job runs there, and leaves nothing in the queue', async () => {
    const { server, slurm } = cluster;
    const pool = async (): Promise<PoolView | undefined> =>
      (await cluster.get<PoolView[]>('/v1/pools')).find(({ name }) => name === 'far');
    await until('the pool says why', async () => /connector/.test((await pool())?.listError ?? ''));
    token = (await server.client.createToken({ kind: 'join', pool: 'far' })).secret ?? '';
    await connector.start(server);
    const job = await server.submit(shell('hostname >"$DROVER_RESULT_DIR/host"; echo ran', POOL));
    expect(await server.ended(job, 60_000)).toMatchObject({ state: 'SUCCEEDED' });
    expect(await server.stdout(job)).toBe('ran\n');
    expect((await server.client.getResult(job)).files).toHaveLength(1);
    await until('the allocation was given back', async () => (await slurm.liveJobs()).length === 0);
    expect(await slurm.jobs()).toHaveLength(1);
    const folder = path.join(slurm.root, 'output');
    for (const name of readdirSync(folder)) {
      expect(readFileSync(path.join(folder, name), 'utf8')).not.toContain(token);
    }
  });
});

const POOL = { pool: 'far' };
