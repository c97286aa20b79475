/** Ctrl-C on `drover up` while jobs run: says how long they wait, and a restart keeps it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DroverClient } from '../../../src/protocol/client.ts';
import type { AttemptView } from '../../../src/protocol/jobs.ts';
import { forever, shell } from '../../support/jobs.ts';
import { QUICK_LOSS } from '../../support/leases.ts';
import { freePort } from '../../support/postgres.ts';
import { DROVER, isAlive, killPid, processesOf } from '../../support/processes.ts';
import { startProcess, type TestProcess } from '../../support/processes.ts';
import { connectionOf } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

/** QUICK_LOSS: the lease less the margin that the watchdog kills before. */
const WAITS_MS = 8000;

let root: string;
let url: string;
let up: TestProcess;
let client: DroverClient;

async function start(): Promise<void> {
  const { port } = new URL(url);
  const env = { HOME: root, DROVER_DATA: root, DROVER_GRPC_ENABLED: 'false', ...QUICK_LOSS };
  const command = [DROVER, 'up', '--port', port, '--resources', 'cpus=4,mem=1Gi'];
  up = startProcess(command, { cwd: root, env });
  await until('it is up', () => up.output().includes('Drover is up'));
  client = connectionOf(root, url).client;
  await until('its agent is online', async () => (await client.cluster()).workers.online === 1);
}

beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'drover-up-'));
  url = `http://127.0.0.1:${await freePort()}`;
  await start();
});
afterAll(async () => {
  await up.stop('SIGINT');
  const left = await until('nothing is left', () => processesOf([root]).length === 0, 10_000)
    .then(() => [])
    .catch(() => processesOf([root]));
  for (const { pid } of left) killPid(pid, 'SIGKILL');
  rmSync(root, { recursive: true, force: true });
  expect(left).toEqual([]);
});

const attempts = async (job: string): Promise<AttemptView[]> =>
  (await client.listAttempts(job, {})).items;

async function running(name: string): Promise<{ job: string; attempt: AttemptView; pid: number }> {
  const job = (await client.submitJob(forever(), name)).id;
  const attempt = await until('it runs', async () =>
    (await attempts(job)).find(({ state }) => state === 'RUNNING'),
  );
  const file = path.join(root, 'agent/attempts', attempt.uid, 'pid');
  return { job, attempt, pid: Number(readFileSync(file, 'latin1').split(' ')[0]) };
}

/** Returns until when it said that jobs wait. */
async function stop(): Promise<string> {
  expect((await up.stop('SIGINT')).code).toBe(0);
  const [, said = ''] = /until (\d\d:\d\d:\d\d)/.exec(up.output()) ?? [];
  return said;
}

test('with nothing running it says so', async () => {
  expect(await stop()).toBe('');
  expect(up.output()).toContain('Nothing is running');
  await start();
});

test('started again within the lease: adopted', async () => {
  const { job, attempt, pid } = await running('within');
  const earliest = Date.now() + WAITS_MS - 1000;
  const said = await stop();
  const latest = Date.now() + WAITS_MS + 1000;
  const times = Array.from({ length: Math.ceil((latest - earliest) / 1000) + 1 }, (_, i) =>
    new Date(earliest + i * 1000).toLocaleTimeString('en-GB'),
  );
  expect(times).toContain(said);
  expect(up.output()).toContain('1 running task goes on');
  await delay(2000);
  expect(isAlive(pid)).toBe(true);
  await start();
  expect(await attempts(job)).toMatchObject([{ n: 1, uid: attempt.uid, state: 'RUNNING' }]);
  const short = await client.submitJob(shell('exit 2'), 'short');
  expect(await client.waitJob(short.id, 20_000)).toMatchObject({ exitCode: 2 });
  expect(isAlive(pid)).toBe(true);
  await client.cancelJob(job);
  expect((await client.waitJob(job, 20_000)).state).toBe('CANCELLED');
  expect(isAlive(pid)).toBe(false);
});

test('started again after the lease: run again', async () => {
  const { job, attempt, pid } = await running('after');
  await stop();
  expect(isAlive(pid)).toBe(true);
  await until('the watchdog ended it', () => !isAlive(pid));
  await start();
  const second = await until('it runs again', async () =>
    (await attempts(job)).find(({ n, state }) => n === 2 && state === 'RUNNING'),
  );
  expect(await attempts(job)).toMatchObject([
    { n: 1, uid: attempt.uid, cause: 'lost' },
    { n: 2, uid: second.uid },
  ]);
  await client.cancelJob(job);
  expect((await client.waitJob(job, 20_000)).state).toBe('CANCELLED');
});
