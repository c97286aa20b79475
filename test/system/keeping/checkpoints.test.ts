/** Checkpoints with real processes: taken when they should be, restored anywhere, never torn. */
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test as each } from 'vitest';
import type { SubmittedSpec } from '../../../src/protocol/jobSpec.ts';
import { gate, shell } from '../../support/jobs.ts';
import { DROVER } from '../../support/processes.ts';
import { startServer, type TestAgent, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

let server: TestServer;
let agents: Record<'a' | 'b', TestAgent>;
beforeAll(async () => {
  server = await startServer();
  const agent = (name: string) =>
    server.agent(name, { resources: `cpus=8,mem=1Gi,gpus=1:only-${name}` });
  agents = { a: agent('a'), b: agent('b') };
  await server.online(2);
});
afterAll(() => server.close());

async function drover(...args: string[]) {
  const env = { PATH: process.env['PATH'], DROVER_URL: server.url, DROVER_TOKEN: server.token };
  const { stdout } = await promisify(execFile)(DROVER, args, {
    env: { ...env, HOME: server.root },
  });
  return stdout;
}

/** They mostly wait, and none is in another's way. */
const test = each.concurrent;
const CHECKPOINT = { everyMs: 1000 };
const saving = (script: string, more: Partial<SubmittedSpec> = {}): SubmittedSpec =>
  shell(script, { checkpoint: CHECKPOINT, retries: 1, ...more });
const only = (name: string): Partial<SubmittedSpec> => ({
  resources: { cpuMillis: 100, device: { models: [`only-${name}`] } },
});

/** Says what it found, saves, and then waits for whatever comes. */
const SAVE =
  'cd "$DROVER_CHECKPOINT_DIR"; echo "resume=$DROVER_RESUME run=$WANDB_RUN_ID $WANDB_RESUME"; ' +
  '[ -e n ] && cat n; n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); ' +
  'put() { echo $n >n.tmp; sleep 0.03; mv n.tmp n; }; ';

const saved = (job: string, count: number) =>
  until(`checkpoint ${count} of ${job}`, async () => {
    const { items } = await server.client.listCheckpoints(job, {});
    return items.some(({ n }) => n >= count) && items;
  });

test('at intervals: only what is finished, and resumed by the next attempt', async () => {
  // The first attempt saves, and is then in the middle of three ways to write a file.
  const job = await server.submit(
    saving(
      `${SAVE} put; [ $DROVER_RESUME = 1 ] && { ls; exit 0; }; ` +
        'echo half >.hidden; echo half >b.part; exec 5>open; echo half >&5; sleep 100',
      { name: 'interval' },
    ),
  );
  const [first] = await saved(job, 1);
  expect(first).toMatchObject({ task: `${job}.0`, n: 1, files: 1, bytes: 2, reason: 'interval' });
  const [attempt] = await server.attempts(job);
  const { items } = await server.client.listWorkers({});
  const { name } = items.find(({ id }) => id === attempt!.worker)!;
  const agent = agents[name as 'a' | 'b'];
  process.kill(-agent.taskPid(attempt!.uid)!, 'SIGKILL');
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  expect(await server.stdout(job)).toBe(
    `resume=0 run=${job}.0 allow\nresume=1 run=${job}.0 allow\n1\nn\n`,
  );
  // `open` had no rename to show, so its attempt's violent end left it out.
  const shown = await drover('job', job);
  expect(shown).toMatch(/CHECKPOINT +FILES +SIZE +TAKEN +FOR/);
  expect(shown).toContain('every 1s, 3 kept');
});

test('on demand and by signal; `drover checkpoints` lists and fetches; the oldest go', async () => {
  const job = await server.submit(
    saving(`${SAVE} trap 'put; n=$((n+1))' USR1; while :; do sleep 0.05; done`, {
      checkpoint: { everyMs: 600_000, signal: 'SIGUSR1', keep: 2 },
    }),
  );
  await until('it runs', async () => (await server.stdoutSoFar(job)).includes('resume'));
  for (const n of [1, 2, 3]) {
    expect(await drover('checkpoint', job)).toBe(`${job}.0 asked\n`);
    await saved(job, n);
  }
  const { items } = await server.client.listCheckpoints(job, { task: 0 });
  expect(items).toMatchObject([
    { n: 2, reason: 'demand' },
    { n: 3, reason: 'demand' },
  ]);
  const target = path.join(server.root, 'got');
  await drover('checkpoints', job, 'get', '3', target);
  expect(readdirSync(target)).toEqual(['n']);
  expect(readFileSync(path.join(target, 'n'), 'utf8')).toBe('3\n');
  await expect(drover('checkpoints', job, 'get', '1', target)).rejects.toMatchObject({
    stderr: expect.stringContaining('there are: 2, 3'),
  });
  await server.client.cancelJob(job);
  await server.ended(job);
  await expect(server.client.requestCheckpoint(job)).rejects.toMatchObject({ code: 'CONFLICT' });
  const plain = await server.submit(shell('true'));
  await expect(server.client.requestCheckpoint(plain)).rejects.toThrow('keeps no checkpoints');
});

test('before the deadline, and at the end that the time limit makes', async () => {
  const job = await server.submit(
    saving(`${SAVE} trap put USR1; trap 'n=9; put; exit 0' TERM; while :; do sleep 0.05; done`, {
      checkpoint: { everyMs: 600_000, signal: 'SIGUSR1', beforeDeadlineMs: 2000, keep: 9 },
      timeLimitMs: 3000,
      graceMs: 5000,
      retries: 0,
    }),
  );
  expect(await server.ended(job)).toMatchObject({ state: 'FAILED' });
  const { items } = await server.client.listCheckpoints(job, {});
  expect(items.map(({ reason }) => reason)).toEqual(['deadline', 'end']);
});

/** Stops by TERM are heard: what is saved in the grace is there in the next attempt. */
const POLITE =
  `${SAVE} [ $n -gt 1 ] && exit 0; stop() { put; exit 1; }; ` +
  'trap stop TERM; while :; do sleep 0.05; done';

test('preempted, or stopped by a budget: saved in the grace, and resumed', async () => {
  // No interval comes in between.
  const more = { graceMs: 10_000, checkpoint: { everyMs: 600_000 } };
  const lower = await server.running(saving(POLITE, { ...only('a'), ...more }));
  const other = await server.running(saving(POLITE, { ...only('b'), ...more }));
  const higher = await server.submit(shell('sleep 0.2', { ...only('a'), priority: 'production' }));
  await server.client.setBudget({
    ...{ tenant: 'default', user: '', weight: 1, deviceMillis: null, microsPerDay: null },
    ...{ deviceHoursPerDay: 0.000001, deviceHoursPerMonth: null, microsPerMonth: null },
    ...{ mode: 'soft', atLimit: 'stop', version: null },
  });
  await saved(other.job, 1);
  await server.client.deleteBudget('default', '');
  for (const { job, attempt } of [lower, other]) {
    expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
    const [first] = await server.attempts(job);
    expect(first).toMatchObject({ cause: 'preempted' });
    const { items } = await server.client.listCheckpoints(job, {});
    expect(items[0]).toMatchObject({ attempt: attempt.uid, reason: 'end' });
    // Committed before the end was told.
    expect(items[0]!.createdAtMs).toBeLessThanOrEqual(first!.endedAtMs!);
    expect(await server.stdout(job)).toMatch(/resume=1.*\n1\n$/);
  }
  await server.ended(higher);
});

test('a directory of its own; a torn checkpoint is named, the one before is taken', async () => {
  const go = gate(server, 'torn');
  const job = await server.submit(
    saving(
      'n=$DROVER_ATTEMPT; ls saves; [ $n = 3 ] && exit 0; ' +
        `echo $n >x; sleep 0.03; mv x saves/f$n; [ $n = 2 ] && { ${go.wait}; }; kill -9 $$`,
      { checkpoint: { ...CHECKPOINT, dir: 'saves' }, retries: 5 },
    ),
  );
  const items = await saved(job, 2);
  const { manifest } = items.find(({ n }) => n === 2)!;
  tear(manifest);
  go.open();
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  const { facts } = (await server.attempts(job))[2]!;
  expect(facts['torn checkpoints']).toContain(`${manifest}: the list of its files`);
  expect(facts['resumed from']).toBe(items.find(({ n }) => n === 1)!.manifest);
  expect(await server.stdout(job)).toBe('f1\nf1\n');
});

test('where none is whole it says so instead of beginning anew', async () => {
  const go = gate(server, 'none');
  // Of a name of its own: what others store as well would not be gone.
  const save = 'cd "$DROVER_CHECKPOINT_DIR"; echo 1 >x.tmp; mv x.tmp only-here';
  const job = await server.submit(saving(`${save}; ${go.wait}; kill -9 $$`));
  for (const { manifest } of await saved(job, 1)) tear(manifest);
  go.open();
  const { reason } = await server.ended(job);
  expect(reason).toMatch(/none of its 1 checkpoints is whole \(sha256:.*submit it again/);
});

test('a name that is taken is no place for checkpoints', async () => {
  const place = path.join(server.root, 'project');
  await promisify(execFile)('mkdir', ['-p', path.join(place, 'saves')]);
  writeFileSync(path.join(place, 'saves', 'mine'), '');
  const job = await server.submit(shell('true', { workdir: place, checkpoint: { dir: 'saves' } }));
  const { reason } = await server.ended(job);
  expect(reason).toContain('saves cannot be the checkpoint directory: there is something');
  expect(readdirSync(path.join(place, 'saves'))).toEqual(['mine']);
});

/** As a disk that lost it would. */
function tear(hash: string): void {
  const hex = hash.slice('sha256:'.length);
  const root = path.join(server.dataDir, 'blobs');
  const found = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.replaceAll('/', '').endsWith(hex),
  );
  expect(found).not.toEqual([]);
  for (const name of found) rmSync(path.join(root, name));
}
