/** What lists and single things look like, and their JSON. */
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TokenView, WorkerView } from '../protocol/fleet.ts';
import { capture } from './captured.ts';
import { addJob, endJob } from './fakeJobs.ts';
import { startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
});
afterEach(() => fake.close());

const run = (args: string[], options: object = {}) => capture(args, { url: fake.url, ...options });
const minutesAgo = (minutes: number): number => Date.now() - minutes * 60_000 - 500;

describe('jobs', () => {
  test('aligned columns without colour on a pipe', async () => {
    addJob(fake, { command: ['x'], name: 'train' }).view.reason = 'no free GPU';
    const array = addJob(fake, { command: ['x'], shape: { kind: 'array', indices: [1, 2, 3] } });
    array.view.createdAtMs = minutesAgo(125);
    array.view.startedAtMs = minutesAgo(60);
    endJob(fake, array, { state: 'SUCCEEDED', endedAtMs: minutesAgo(50) });
    array.view.tasks.succeeded = 3;
    const { stdout, stderr, code } = await run(['jobs']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(
      [
        'ID  NAME   STATE      TASKS  OWNER  CREATED   RAN  REASON',
        'j1  train  PENDING    1      ada    0s ago    -    no free GPU',
        'j2  -      SUCCEEDED  3/3    ada    2h5m ago  10m',
        '',
      ].join('\n'),
    );
  });

  test('a terminal gets colour and no line longer than it', async () => {
    addJob(fake, { command: ['x'], name: '名前' }).view.reason = 'a long reason '.repeat(20);
    const { stdout } = await run(['jobs'], { columns: 70 });
    expect(stdout).toContain('\x1b[33mPENDING');
    const lines = stripVTControlCharacters(stdout).split('\n');
    expect(lines[1]).toMatch(/…$/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(70);
    const plain = await run(['jobs'], { columns: 70, env: { NO_COLOR: '1' } });
    expect(plain.stdout).not.toContain('\x1b');
  });

  test('a hostile name cannot move the cursor', async () => {
    addJob(fake, { command: ['x'], name: 'a\x1b[2J\nb\u202e' });
    const { stdout } = await run(['jobs']);
    expect(stdout).toContain('a�[2J�b�');
    expect(stdout.split('\n')).toHaveLength(3);
  });

  test('pages are walked up to --limit or --all', async () => {
    for (let n = 0; n < 1203; n++) addJob(fake, { command: ['x'] });
    const some = await run(['jobs', '--limit', '600', '--json']);
    expect(JSON.parse(some.stdout)).toHaveLength(600);
    const all = await run(['jobs', '--all', '--json']);
    expect(JSON.parse(all.stdout)).toHaveLength(1203);
    const few = await run(['jobs']);
    expect(few.stdout.trim().split('\n')).toHaveLength(51);
    expect(few.stderr).toContain('--limit N or --all');
  });

  test('filters go to the server', async () => {
    addJob(fake, { command: ['x'], name: 'a' });
    endJob(fake, addJob(fake, { command: ['x'], name: 'b' }), { state: 'FAILED' });
    const { stdout } = await run(['jobs', '--state', 'failed', '--name', 'b', '--json']);
    expect(JSON.parse(stdout)).toMatchObject([{ id: 'j2' }]);
  });

  test('empty lists say what to type', async () => {
    expect((await run(['jobs'])).stderr).toContain('drover run -- echo hello');
    expect((await run(['jobs', '--state', 'failed'])).stderr).toContain('no job matches');
    expect((await run(['queue'])).stderr).toContain('nothing waits');
    expect((await run(['workers'])).stderr).toContain('drover agent --join');
    expect((await run(['tokens'])).stderr).toContain('drover tokens create');
    expect((await run(['jobs', '--json'])).stdout).toBe('[]\n');
  });
});

describe('job', () => {
  test('a failed array: the facts, and only the tasks that went wrong', async () => {
    const indices = Array.from({ length: 100 }, (_, i) => i);
    const job = addJob(fake, {
      command: ['python3', '-c', "print('x')"],
      shape: { kind: 'array', indices },
      resources: { cpuMillis: 500, memoryBytes: 2 ** 30, device: null, ports: 0 },
    });
    endJob(fake, job, { state: 'FAILED', exitCode: 3, reason: 'task 7 exited with 3' });
    Object.assign(job.view.tasks, { pending: 0, succeeded: 99, failed: 1 });
    Object.assign(job.tasks[7]!, { state: 'FAILED', exitCode: 3, attempts: 1, worker: 'w1' });
    job.attempts.push({
      uid: 'u1',
      task: 'j1.7',
      n: 1,
      round: 0,
      worker: 'w1',
      state: 'ENDED',
      cause: 'exited',
      exitCode: 3,
      signal: null,
      message: '',
      assignedAtMs: minutesAgo(5),
      startedAtMs: minutesAgo(5),
      endedAtMs: minutesAgo(4),
      facts: {},
      result: null,
      resultBytes: null,
      priceMicros: 0,
      chargedMicros: 0,
    });
    const { stdout, code } = await run(['job', 'j1']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^state +FAILED$/m);
    expect(stdout).toMatch(/^reason +task 7 exited with 3$/m);
    expect(stdout).toMatch(/^command +python3 -c 'print\('\\''x'\\''\)'$/m);
    expect(stdout).toMatch(/^resources +0.5 cpus, 1G$/m);
    expect(stdout).toMatch(/^tasks +100, 99 succeeded, 1 failed$/m);
    expect(stdout.match(/^j1\.\d+ /gm)).toEqual(['j1.7 ']);
    expect(stdout).toMatch(/^j1\.7#1 +ENDED +exited 3 +w1 +5m/m);
    const json = JSON.parse((await run(['job', 'j1', '--json'])).stdout) as object;
    expect(json).toMatchObject({ id: 'j1', attempts: [{ task: 'j1.7' }] });
    expect(json).toHaveProperty('taskList.length', 100);
  });
});

const worker: WorkerView = {
  id: 'w1',
  name: 'gpu-1',
  pool: 'default',
  state: 'ONLINE',
  draining: false,
  address: '10.0.0.1',
  network: 'lan',
  attributes: {},
  agentVersion: '0.1.0',
  joinedAtMs: 0,
  lastSeenAtMs: Date.now(),
  host: 'node',
  instance: null,
  endsAtMs: null,
  problems: [],
  attempts: 2,
  total: { cpuMillis: 16_000, memoryBytes: 64 * 2 ** 30, devices: 2 },
  free: { cpuMillis: 14_500, memoryBytes: 32 * 2 ** 30, devices: 1 },
  devices: [0, 1].map((index) => ({
    index,
    kind: 'gpu',
    model: 'A100',
    memoryBytes: 80 * 2 ** 30,
  })),
};

describe('workers', () => {
  test('what is free of what there is', async () => {
    fake.workers.push({ ...worker });
    const { stdout } = await run(['workers']);
    expect(stdout).toMatch(
      /w1 +gpu-1 +default +ONLINE +14.5\/16 +32G\/64G +1\/2 +2 .* 2x A100 80G/,
    );
  });

  test('drain and undrain', async () => {
    fake.workers.push({ ...worker });
    expect((await run(['workers', 'drain', 'w1'])).stdout).toBe('w1 drains\n');
    expect((await run(['workers'])).stdout).toContain('ONLINE draining');
    const undrained = await run(['workers', 'undrain', 'w1', '--json']);
    expect(JSON.parse(undrained.stdout)).toMatchObject({ draining: false });
    expect((await run(['workers', 'drian', 'w1'])).stderr).toContain(
      'try: drover workers drain ID',
    );
    expect((await run(['workers', 'drain'])).code).toBe(2);
    expect((await run(['workers', 'drain', 'w7'])).code).toBe(1);
  });
});

describe('tokens', () => {
  test('create prints the secret alone on stdout', async () => {
    const flags = '--kind join --pool p --max-workers 4 --expires 30d --name n';
    const { stdout, stderr } = await run(['tokens', 'create', ...flags.split(' ')]);
    expect(stdout).toBe('drv_fresh\n');
    expect(stderr).toContain(`drover agent --join ${fake.url} TOKEN`);
    const expiresInMs = 30 * 86_400_000;
    const body = { kind: 'join', pool: 'p', maxLiveWorkers: 4, expiresInMs, name: 'n' };
    expect(fake.requests.at(-1)!.body).toEqual(body);
  });

  test('list and revoke', async () => {
    const scopes: TokenView['scopes'] = ['jobs:read'];
    const none = { expiresAtMs: null, revokedAtMs: null, lastUsedAtMs: null, attempt: null };
    const valid = { ...none, pool: '', maxLiveWorkers: 0 };
    const who = { tenant: 't', user: 'ada', createdAtMs: minutesAgo(3) };
    fake.tokens.push({ id: 't1', kind: 'user', name: 'ci', scopes, ...who, ...valid });
    expect((await run(['tokens'])).stdout).toMatch(
      /t1 +user +ci +ada +valid +3m.* ago +- +jobs:read/,
    );
    expect((await run(['tokens', 'revoke', 't1'])).stdout).toBe('t1 revoked\n');
    expect((await run(['tokens', 'list'])).stdout).toContain('revoked');
  });

  test.each([
    [['tokens', 'craete'], 'try: drover tokens create'],
    [['tokens', 'create', '--scope', 'job:read'], 'did you mean jobs:read?'],
    [['tokens', 'create', '--kind', 'x'], 'user, join'],
    [['tokens', 'revoke'], 'ID is missing'],
  ])('bad input %j', async (args, expected) => {
    const result = await run(args);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(expected);
  });
});

test('queue shows the order and the reasons', async () => {
  const entry = { owner: 'ada', priority: 'batch', createdAtMs: minutesAgo(3) } as const;
  fake.queue.push({ ...entry, job: 'j1', name: '', position: 1, pendingTasks: 7, reason: 'full' });
  expect((await run(['queue'])).stdout).toMatch(/1 +j1 +- +ada +batch +7 +3m\d*s? +full/);
});

test('cancel several', async () => {
  addJob(fake, { command: ['x'] });
  addJob(fake, { command: ['x'] });
  expect((await run(['cancel', 'j1', 'j2'])).stdout).toBe('j1 CANCELLED\nj2 CANCELLED\n');
  expect((await run(['cancel', 'j9'])).code).toBe(1);
  expect((await run(['cancel'])).code).toBe(2);
});

test('info and its other name', async () => {
  const { stdout } = await run(['info']);
  expect(stdout).toContain('lab (c1abc)');
  expect(stdout).toContain(`${fake.url} (from DROVER_URL)`);
  expect(JSON.parse((await run(['cluster', '--json'])).stdout)).toMatchObject({ id: 'c1abc' });
});
