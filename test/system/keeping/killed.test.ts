/**
 * Runs that are killed at random ten times on two agents end as if nothing had happened. The one of
 * PyTorch is run by `make proof-torch`, which gets torch first: it is a large download.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { killAtRandom } from '../../support/killing.ts';
import { DROVER } from '../../support/processes.ts';
import { startServer, type TestAgent, type TestServer } from '../../support/server.ts';

const EXAMPLES = path.resolve(import.meta.dirname, '../../../examples');
const KILLS = 10;
/** Loading torch a dozen times takes minutes on a machine that is busy otherwise. */
const PATIENCE_MS = 1_200_000;
/** Where there is a Python with torch. */
const TORCH = process.env['TORCH_VENV'];
const run = promisify(execFile);

let server: TestServer;
let agents: TestAgent[];
beforeAll(async () => {
  server = await startServer({
    env: {
      DROVER_LEASES_WORKER_MS: '1500',
      DROVER_LEASES_ATTEMPT_MS: '6000',
      DROVER_LEASES_KILL_MARGIN_MS: '1500',
      DROVER_LEASES_LONG_POLL_MS: '500',
      DROVER_LOOPS_LEASES_MS: '200',
    },
  });
  agents = ['a', 'b'].map((name) => server.agent(name, { resources: 'cpus=4,mem=16Gi' }));
  await server.online(2);
});
afterAll(() => server.close());

interface Proof {
  example: string;
  /** Variables that make it as long as it has to be. */
  env: Record<string, string>;
  /** What it leaves, and where it is in an undisturbed run's directory. */
  left: string;
  alone: string;
  tasks: number;
}

test('N-body: four tasks of the example, bit for bit', () =>
  prove({
    ...{ example: 'checkpoint-nbody.yaml', env: { STEPS: '50000' } },
    ...{ left: 'final.json', alone: 'result/final.json', tasks: 4 },
  }));

if (TORCH) {
  const env = {
    ...{ STEPS: '6000', SAVE_EVERY: '50', OMP_NUM_THREADS: '1' },
    PATH: `${path.resolve(TORCH)}/bin:${process.env['PATH']}`,
  };
  const torch = { example: 'checkpoint-torch.yaml', left: 'model.pt', alone: 'model.pt' };
  test('PyTorch: four tasks of the example, bit for bit', { timeout: PATIENCE_MS }, () =>
    prove({ ...torch, env, tasks: 4 }),
  );
  test('PyTorch: one task, killed every time, bit for bit', { timeout: PATIENCE_MS }, () =>
    prove({ ...torch, env: { ...env, STEPS: '12000' }, tasks: 1 }),
  );
  test('N-body beside PyTorch: one task, killed every time', { timeout: PATIENCE_MS }, () =>
    prove({
      ...{ example: 'checkpoint-nbody.yaml', env: { STEPS: '400000' } },
      ...{ left: 'final.json', alone: 'result/final.json', tasks: 1 },
    }),
  );
}

async function prove({ example, env, left, alone, tasks }: Proof): Promise<void> {
  const seed = Number(process.env['KILL_SEED'] ?? Date.now() % 100_000);
  const began = Date.now();
  const wanted = await runAlone(example, env, alone);
  // On a fast machine and a slow one alike: no task is through before the last of the kills.
  const longestMs = (Date.now() - began) / KILLS;
  const job = await submit(example, { env, array: `0-${tasks - 1}`, cpus: 0.5, graceMs: 500 });
  const lines = [`KILL_SEED=${seed}`];
  const say = (line: string): void => void lines.push(line);
  try {
    const killing = { server, agents, job, kills: KILLS, seed, longestMs, say };
    const { atWork } = await killAtRandom(killing);
    expect(atWork).toBeGreaterThanOrEqual(KILLS / 2);
    expect(await server.ended(job, 500_000)).toMatchObject({ state: 'SUCCEEDED' });
    for (let task = 0; task < tasks; task++) {
      const { files } = await server.client.getResult(job, task);
      expect(files).toMatchObject([{ path: left, hash: wanted }]);
    }
    const attempts = await server.attempts(job);
    expect(attempts.length).toBeGreaterThanOrEqual(KILLS + tasks);
    expect(new Set(attempts.map(({ worker }) => worker)).size).toBeGreaterThan(1);
    expect(await server.stdout(job)).toContain('resumed at step');
    console.info(`${example}, tasks ${tasks}, attempts ${attempts.length}:\n${lines.join('\n')}`);
  } catch (error) {
    throw new Error(`killed so:\n${lines.join('\n')}`, { cause: error });
  }
}

function read(example: string): Record<string, unknown> & { command: string[] } {
  return parse(readFileSync(path.join(EXAMPLES, example), 'utf8')) as never;
}

/** By `drover submit`, as a user would who changed some lines of the example. */
async function submit(example: string, changes: Record<string, unknown>): Promise<string> {
  const file = path.join(server.root, example);
  const { checkpoint } = read(example) as { checkpoint?: object };
  const quick = { ...checkpoint, every: '1s' };
  writeFileSync(file, stringify({ ...read(example), ...changes, checkpoint: quick }));
  const { stdout } = await run(DROVER, ['submit', '-f', file], {
    env: {
      PATH: process.env['PATH'],
      HOME: server.root,
      DROVER_URL: server.url,
      DROVER_TOKEN: server.token,
    },
  });
  return stdout.trim();
}

/** Without Drover: the hash of what it leaves. */
async function runAlone(
  example: string,
  env: Record<string, string>,
  left: string,
): Promise<string> {
  const folder = path.join(server.root, `alone-${example}`);
  for (const name of ['checkpoints', 'result']) {
    mkdirSync(path.join(folder, name), { recursive: true });
  }
  const { command } = read(example);
  await run(command[0]!, command.slice(1), {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      ...env,
      DROVER_RESUME: '0',
      DROVER_CHECKPOINT_DIR: path.join(folder, 'checkpoints'),
      DROVER_RESULT_DIR: path.join(folder, 'result'),
    },
  });
  const { stdout } = await run('sha256sum', [path.join(folder, left)]);
  return `sha256:${stdout.split(' ')[0]}`;
}
