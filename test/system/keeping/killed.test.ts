/** A run that is killed at random ten times on two agents ends as if nothing had happened. */
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
const STEPS = '50000';
const TASKS = [0, 1, 2, 3];

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
  agents = ['a', 'b'].map((name) => server.agent(name, { resources: 'cpus=2,mem=1Gi' }));
  await server.online(2);
});
afterAll(() => server.close());

test('N-body: four tasks of the example, bit for bit', async () => {
  const seed = Number(process.env['KILL_SEED'] ?? Date.now() % 100_000);
  const undisturbed = runAlone(path.join(server.root, 'alone'));
  const job = await submit('checkpoint-nbody.yaml', { env: { STEPS }, array: '0-3', graceMs: 500 });
  const lines = [`KILL_SEED=${seed}`];
  const say = (line: string): void => void lines.push(line);
  try {
    await killAtRandom({ server, agents, job, kills: KILLS, seed, longestMs: 600, say });
    expect(await server.ended(job, 100_000)).toMatchObject({ state: 'SUCCEEDED' });
    const wanted = await undisturbed;
    for (const task of TASKS) {
      const { files } = await server.client.getResult(job, task);
      expect(files).toMatchObject([{ path: 'final.json', hash: wanted }]);
    }
    const attempts = await server.attempts(job);
    expect(attempts.length).toBeGreaterThanOrEqual(KILLS + TASKS.length);
    expect(new Set(attempts.map(({ worker }) => worker)).size).toBeGreaterThan(1);
    expect(await server.stdout(job)).toContain('resumed at step');
  } catch (error) {
    throw new Error(`killed so:\n${lines.join('\n')}`, { cause: error });
  }
});

/** By `drover submit`, as a user would who changed some lines of the example. */
async function submit(example: string, changes: Record<string, unknown>): Promise<string> {
  const job = {
    ...(parse(readFileSync(path.join(EXAMPLES, example), 'utf8')) as object),
    ...changes,
  };
  const file = path.join(server.root, example);
  writeFileSync(file, stringify(job));
  const env = { PATH: process.env['PATH'], DROVER_URL: server.url, DROVER_TOKEN: server.token };
  const { stdout } = await promisify(execFile)(DROVER, ['submit', '-f', file], {
    env: { ...env, HOME: server.root },
  });
  return stdout.trim();
}

/** Without Drover: the hash of what it leaves. */
async function runAlone(folder: string): Promise<string> {
  const { command } = parse(readFileSync(path.join(EXAMPLES, 'checkpoint-nbody.yaml'), 'utf8')) as {
    command: string[];
  };
  for (const name of ['checkpoint', 'result'])
    mkdirSync(path.join(folder, name), { recursive: true });
  const env = {
    PATH: process.env['PATH'],
    STEPS,
    DROVER_RESUME: '0',
    DROVER_CHECKPOINT_DIR: path.join(folder, 'checkpoint'),
    DROVER_RESULT_DIR: path.join(folder, 'result'),
  };
  await promisify(execFile)(command[0]!, command.slice(1), { env });
  const { stdout } = await promisify(execFile)('sha256sum', [
    path.join(folder, 'result/final.json'),
  ]);
  return `sha256:${stdout.split(' ')[0]}`;
}
