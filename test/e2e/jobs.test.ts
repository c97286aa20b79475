/** Arrays, gangs, batches, the queue, wait and cancel with the real processes. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JobView, QueueEntry } from '../../src/protocol/jobs.ts';
import { startJourney, until, type Journey } from '../support/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=4,mem=4Gi'] });
  await until('the worker is there', async () =>
    (await journey.client.listWorkers({})).items.some(({ state }) => state === 'ONLINE'),
  );
});
afterAll(() => journey.close());

const json = async <Result>(...args: string[]): Promise<Result> =>
  JSON.parse((await journey.drover(...args, '--json')).stdout) as Result;
const sh = (script: string) => ['sh', '-c', script];

describe('the examples', () => {
  test('an array of 100', async () => {
    const { code, stdout } = await journey.drover('submit', '-f', 'examples/array.yaml');
    const id = stdout.trim();
    expect([code, (await journey.drover('wait', id)).code]).toEqual([0, 0]);
    const { stdout: log } = await journey.drover('logs', id);
    const lines = new Set(
      log
        .trim()
        .split('\n')
        .map((line) => line.replace(/^\S+ /, '')),
    );
    expect(lines).toEqual(
      new Set(Array.from({ length: 100 }, (_, n) => `${n} squared is ${n * n}`)),
    );
    const [one, same] = await Promise.all([
      journey.drover('logs', `${id}.7`),
      journey.drover('logs', id, '--task', '7'),
    ]);
    expect([one.stdout, same.stdout]).toEqual(['7 squared is 49\n', '7 squared is 49\n']);
  });

  test('a gang of 4 whose members find each other', async () => {
    const { stdout } = await journey.drover('submit', '-f', 'examples/gang.yaml');
    const id = stdout.trim();
    expect((await journey.drover('wait', id)).code).toBe(0);
    const log = (await journey.drover('logs', id)).stdout;
    expect(log).toContain('rank 0 met ranks [1, 2, 3]');
    for (const rank of [1, 2, 3]) expect(log).toContain(`rank ${rank} of 4 heard: all 4 of us`);
  });
});

describe('gangs', () => {
  test('one member fails: the round ends for all, all run again and meet', async () => {
    // Round 0: rank 2 fails while the others would wait forever. Round 1: all meet rank 0.
    const script =
      'echo "rank $RANK attempt $DROVER_ATTEMPT"; [ -n "$MASTER_ADDR" ] || exit 8\n' +
      'if [ "$DROVER_ATTEMPT" = 1 ]; then [ "$RANK" = 2 ] && exit 6; sleep 300; fi\n' +
      'if [ "$RANK" = 0 ]; then exec timeout 30 python3 -c "\n' +
      'import os, socket\n' +
      "s = socket.create_server(('', int(os.environ['MASTER_PORT'])))\n" +
      'for _ in range(3): s.accept()\n' +
      "print('met all')\"; fi\n" +
      'for i in $(seq 100); do python3 -c "\n' +
      'import os, socket\n' +
      'e = os.environ\n' +
      "socket.create_connection((e['MASTER_ADDR'], int(e['MASTER_PORT'])))\" \\\n" +
      '2>/dev/null && exit 0; sleep 0.2; done; exit 7';
    const gang = ['--gang', '4', '--ports', '1', '--cpus', '0.5', '--retries', '1'];
    const { code, stdout } = await journey.drover('run', ...gang, '--', ...sh(script));
    expect(stdout).toMatch(/met all/);
    expect(code).toBe(0);
    const { items } = await journey.client.listJobs({ limit: 1 });
    const attempts = await journey.attempts(items[0]!.id);
    expect(attempts).toHaveLength(8);
    const first = attempts.filter(({ round }) => round === 0);
    const causes = first.map(({ task, cause }) => `${task.split('.')[1]} ${cause}`).toSorted();
    expect(causes).toEqual(['0 gang-failed', '1 gang-failed', '2 exited', '3 gang-failed']);
    expect(attempts.filter(({ round, exitCode }) => round === 1 && exitCode === 0)).toHaveLength(4);
  });

  test('one that does not fit waits whole, with a reason', async () => {
    const { stdout } = await journey.drover(
      'run',
      '-d',
      '--gang',
      '5',
      '--cpus',
      '1',
      '--',
      'true',
    );
    const id = stdout.trim();
    const entry = await until('it has a reason', async () =>
      (await json<QueueEntry[]>('queue')).find(({ job, reason }) => job === id && reason !== ''),
    );
    expect(entry).toMatchObject({
      pendingTasks: 5,
      reason: expect.stringMatching(/room for a member, but all 5 do not fit/),
    });
    expect((await journey.attempts(id)).length).toBe(0);
    await journey.drover('cancel', id);
    expect(await journey.ended(id)).toMatchObject({ state: 'CANCELLED' });
  });

  test('a gang that names no port has one for its rank 0 all the same', async () => {
    const script = 'echo "$RANK/$WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:+has a port}"';
    const { code, stdout } = await journey.drover('run', '--gang', '2', '--', ...sh(script));
    expect(code).toBe(0);
    expect(stdout).toMatch(/0\/2 \S+ has a port/);
    expect(stdout).toMatch(/1\/2 \S+ has a port/);
  });
});

describe('the queue', () => {
  test('a full worker: by priority, then age, each with a reason; run so', async () => {
    const order = path.join(journey.home, 'order');
    // Of the highest band, so that nothing here interrupts it.
    const hold = await journey.submit({
      command: ['sleep', '60'],
      resources: { cpuMillis: 4000 },
      priority: 'production',
    });
    await journey.running(hold);
    const names = ['batch-1', 'interactive', 'production', 'batch-2'];
    const ids: Record<string, string> = {};
    for (const name of names) {
      ids[name] = await journey.submit({
        name,
        priority: name.split('-')[0] as 'batch',
        command: sh(`echo ${name} >> ${order}`),
        resources: { cpuMillis: 4000 },
      });
    }
    const wanted = ['production', 'interactive', 'batch-1', 'batch-2'];
    const queue = await until('all wait with a reason', async () => {
      const entries = await json<QueueEntry[]>('queue');
      return entries.length === 4 && entries.every(({ reason }) => reason !== '') && entries;
    });
    expect(queue.map(({ name }) => name)).toEqual(wanted);
    for (const { reason } of queue) expect(reason).toMatch(/CPU/);
    const table = await journey.drover('queue');
    expect(table.stdout).toMatch(/1 .*production[\s\S]*4 .*batch-2/);
    await journey.drover('cancel', hold);
    for (const id of Object.values(ids)) await journey.ended(id);
    const { stdout } = await journey.start(['run', '--', 'cat', order]).ended;
    expect(stdout.trim().split('\n')).toEqual(wanted);
  });
});

describe('wait and cancel', () => {
  test('wait: the first code that is not 0; --timeout', async () => {
    const [ok, bad, slow] = await Promise.all([
      journey.submit({ command: ['true'] }),
      journey.submit({ command: sh('exit 12') }),
      journey.submit({ command: ['sleep', '60'] }),
    ]);
    const [both, late] = await Promise.all([
      journey.drover('wait', ok, bad),
      journey.drover('wait', slow, '--timeout', '1s'),
    ]);
    expect(both.code).toBe(12);
    expect([late.code, late.stderr]).toEqual([
      125,
      expect.stringMatching(/RUNNING|still|not ended/),
    ]);
    await journey.drover('cancel', slow);
  });

  test('cancel: TERM to the whole group, then KILL after the grace', async () => {
    const folder = path.join(journey.home, 'cancel');
    const script =
      `mkdir -p ${folder}; trap 'touch ${folder}/parent' TERM\n` +
      `sh -c 'trap "touch ${folder}/child" TERM; touch ${folder}/ready\n` +
      `while :; do sleep 0.1; done' &\n` +
      'while :; do sleep 0.1; done';
    const id = await journey.submit({ command: sh(script), graceMs: 1500 });
    const ready = async () => (await journey.drover('run', '--', 'ls', folder)).stdout;
    await until('both have their traps', async () => (await ready()).includes('ready'));
    const begun = performance.now();
    const { code, stdout } = await journey.drover('cancel', id);
    expect([code, stdout]).toEqual([0, expect.stringContaining(id)]);
    const job = await journey.ended(id);
    expect(performance.now() - begun).toBeGreaterThan(1400);
    expect(job.state).toBe('CANCELLED');
    expect((await ready()).trim().split('\n')).toEqual(['child', 'parent', 'ready']);
    expect((await journey.attempts(id))[0]).toMatchObject({ cause: 'cancelled' });
    // Cancelling what has ended changes nothing.
    expect((await journey.drover('cancel', id)).code).toBe(0);
    expect((await journey.client.getJob(id)).state).toBe('CANCELLED');
  });
});

describe('batches and keys', () => {
  test('a file of several jobs, all or none', async () => {
    const file = path.join(journey.home, 'jobs.yaml');
    writeFileSync(file, 'jobs:\n  - {command: echo a, name: a}\n  - {command: echo b, name: b}\n');
    const { stdout } = await journey.drover('submit', '-f', file);
    const ids = stdout.trim().split('\n');
    expect(ids).toHaveLength(2);
    expect((await journey.drover('wait', ...ids)).code).toBe(0);
    const before = (await journey.client.listJobs({ limit: 1 })).items[0]!.id;
    const bad = await journey.api('POST /v1/jobs/batch', {
      jobs: [{ command: ['true'] }, { command: ['true'], priority: 'urgent' }],
    });
    expect(bad).toMatchObject({ status: 400, body: { code: 'INVALID_ARGUMENT' } });
    expect(bad.body['detail']).toContain('jobs.1.priority');
    expect((await journey.client.listJobs({ limit: 1 })).items[0]!.id).toBe(before);
  });

  test('same key and body: the same job; another body: 409', async () => {
    const headers = { 'idempotency-key': 'key-1' };
    const spec = { command: ['true'], name: 'keyed' };
    const first = await journey.api('POST /v1/jobs', spec, { headers });
    const again = await journey.api('POST /v1/jobs', spec, { headers });
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.body['data'].id).toBe(first.body['data'].id);
    const other = await journey.api('POST /v1/jobs', { ...spec, name: 'other' }, { headers });
    expect(other).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_MISMATCH' } });
    expect(other.body['hint']).toBeTruthy();
  });

  test('100 clients at once with one key: one job', async () => {
    const headers = { 'idempotency-key': 'storm' };
    const spec = { command: ['true'], name: 'storm' };
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => journey.api('POST /v1/jobs', spec, { headers })),
    );
    expect(new Set(answers.map(({ body }) => body['data'].id)).size).toBe(1);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect((await journey.client.listJobs({ name: 'storm' })).items).toHaveLength(1);
  });

  test('lists by state and name, in pages', async () => {
    const all = await json<JobView[]>('jobs', '--all');
    const paged: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await journey.client.listJobs({ limit: 3, cursor });
      paged.push(...page.items.map(({ id }) => id));
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(paged).toEqual(all.map(({ id }) => id));
    const failed = await json<JobView[]>('jobs', '--state', 'failed', '--all');
    expect(failed.length).toBe(all.filter(({ state }) => state === 'FAILED').length);
  });
});
