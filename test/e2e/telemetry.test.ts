/** Metrics that Prometheus takes, and health that means it. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, startJourney, until, type Journey } from '../support/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=4,mem=1Gi'] });
  expect((await journey.drover('run', '--', 'true')).code).toBe(0);
});
afterAll(() => journey.close());

test('promtool finds nothing wrong with /metrics', async () => {
  const { status, text, headers } = await call(journey.url, 'GET /metrics');
  expect([status, headers.get('content-type')]).toEqual([
    200,
    expect.stringContaining('text/plain'),
  ]);
  for (const name of [
    'drover_tasks{state="PENDING"} 0',
    'drover_workers{state="ONLINE"} 1',
    'drover_tasks_placed_total 1',
    'drover_loop_healthy{loop="schedule"} 1',
    'drover_gateway_requests_total{',
  ]) {
    expect(text).toContain(name);
  }
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (checked.error && process.env['CI'] !== 'true') {
    console.warn('promtool is not installed (package prometheus): the metrics were not checked');
    return;
  }
  expect([checked.error, checked.status, checked.stdout, checked.stderr]).toEqual([
    undefined,
    0,
    '',
    '',
  ]);
});

test('alive and ready, with the loops', async () => {
  const [alive, ready] = await Promise.all([
    call(journey.url, 'GET /healthz'),
    call(journey.url, 'GET /readyz'),
  ]);
  expect([alive.status, ready.status]).toEqual([200, 200]);
  const names = ready.body['data'].loops.map(({ name }: { name: string }) => name);
  expect(names).toEqual(['schedule', 'leases', 'deadlines', 'charges', 'notices']);
});

test('a store that cannot be written: nothing accepted, not ready; then well again', async () => {
  const before = await journey.client.listJobs({ limit: 500 });
  const other = new DatabaseSync(path.join(journey.dir, 'drover.db'));
  other.exec('BEGIN IMMEDIATE');
  const answer = await journey.api('POST /v1/jobs', { command: ['true'] }).then(
    ({ status }) => status,
    () => 'no answer',
  );
  expect([500, 503, 'no answer']).toContain(answer);
  const status = (): Promise<number> =>
    call(journey.url, 'GET /readyz').then(
      (ready) => ready.status,
      () => 0,
    );
  await until('it is not ready', async () => (await status()) !== 200, 10_000);
  other.exec('ROLLBACK');
  other.close();
  await until('it is ready again', async () => (await status()) === 200);
  const after = await journey.client.listJobs({ limit: 500 });
  expect(after.items.map(({ id }) => id)).toEqual(before.items.map(({ id }) => id));
  expect((await journey.drover('run', '--', 'echo', 'again')).stdout).toBe('again\n');
  expect(journey.up.stderr()).toMatch(/the server ended .* and starts again/);
  expect(journey.up.stderr()).not.toMatch(/\n {4}at /);
});
