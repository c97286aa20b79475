/**
 * A real cluster whose machines come from a real Slurm: pools as the test writes them, agents that
 * run from this checkout. Whatever the test does, `close` looks whether anything was left behind.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import { DROVER } from './processes.ts';
import { startServer, type TestServer } from './server.ts';
import { startSlurm, type Slurm } from './slurm.ts';
import type { SlurmConf } from './slurmSettings.ts';
import { until } from './wait.ts';

export interface SlurmClusterOptions {
  /** By name: settings of pools beside those that every pool of the tests has. */
  pools: Record<string, PoolDraft>;
  /** More sites beside `lab`. */
  sites?: Record<string, object>;
  slurm?: SlurmConf;
  /** One that runs already, and that is left running. */
  on?: Slurm;
  env?: Record<string, string>;
}

interface PoolDraft {
  slurm?: Record<string, unknown>;
  [setting: string]: unknown;
}

export interface SlurmCluster {
  slurm: Slurm;
  server: TestServer;
  /** As `drover pools` and `drover instances` ask. */
  get<Data>(where: string): Promise<Data>;
  close(): Promise<void>;
}

/** Short, since tests wait for them. */
const QUICK = { cooldownMs: 200, pollMs: 300, idleTimeoutMs: 600_000, bootTimeoutMs: 60_000 };

export async function startSlurmCluster(options: SlurmClusterOptions): Promise<SlurmCluster> {
  const slurm = options.on ?? (await startSlurm(options.slurm));
  const closeSlurm = async (): Promise<void> => {
    if (!options.on) await slurm.close();
  };
  const config = path.join(slurm.root, 'drover.yaml');
  const scratch = path.join(slurm.root, 'scratch');
  mkdirSync(scratch, { recursive: true });
  const pools = Object.entries(options.pools).map(([name, draft]) => {
    const where = { site: 'lab', agentCommand: `exec ${DROVER} agent --join "$DROVER_URL"` };
    const folders = { scratch, folder: path.join(slurm.root, 'output') };
    const from = draft.slurm && { slurm: { ...where, ...folders, ...draft.slurm } };
    return [name, { ...QUICK, ...draft, ...from }];
  });
  const sites = { lab: {}, ...options.sites };
  writeFileSync(config, stringify({ fleet: { sites, pools: Object.fromEntries(pools) } }));
  try {
    const { SLURM_CONF = '', PATH = '' } = slurm.env();
    const env = { SLURM_CONF, PATH, DROVER_CONFIG: config, ...options.env };
    const server = await startServer({ env });
    return {
      slurm,
      server,
      get: (where) => getData(server, where),
      async close() {
        try {
          await endJobs(slurm, server);
          await server.close();
        } finally {
          await closeSlurm();
        }
      },
    };
  } catch (error) {
    await closeSlurm();
    throw error;
  }
}

/** The people's first, so that no pool brings new machines for them. */
async function endJobs(slurm: Slurm, { client }: TestServer): Promise<void> {
  for (const state of ['RUNNING', 'PENDING']) {
    const { items } = await client.listJobs({ state, limit: 500 });
    for (const { id } of items) await client.cancelJob(id);
  }
  await until('nothing of Drover is in the queue', async () => {
    const left = await slurm.liveJobs();
    if (left.length > 0) await slurm.run(['scancel', ...left.map(({ id }) => id)]);
    return left.length === 0;
  });
}

async function getData<Data>(server: TestServer, where: string): Promise<Data> {
  const headers = { authorization: `Bearer ${server.token}` };
  const response = await fetch(server.url + where, { headers });
  const body = (await response.json()) as { data: Data };
  if (!response.ok) throw new Error(`${where}: ${response.status} ${JSON.stringify(body)}`);
  return body.data;
}
