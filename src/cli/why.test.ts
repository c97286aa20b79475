/** `drover why` as a person reads it. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WhyView } from '../protocol/why.ts';
import { capture } from './captured.ts';
import { addJob, endJob } from './fakeJobs.ts';
import { startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
  addJob(fake, { command: ['x'] });
});
afterEach(() => fake.close());

const run = (args: string[]) => capture(args, { url: fake.url });
const explain = (why: Partial<WhyView>): void => {
  fake.explanations.set('j1', why);
};

test('the sentence first, then workers, queue, quota, start and what to try', async () => {
  explain({
    code: 'NO_ROOM',
    sentence: 'no room on 14 workers',
    workers: [
      { reason: 'closed', count: 2, text: 'draining or out of contact' },
      { reason: 'devices', count: 12, text: 'too few free devices that match' },
    ],
    position: 4,
    ahead: 3,
    aheadSample: [
      { job: 'j8', name: 'train', rule: 'production goes before batch' },
      { job: 'j09', name: '', rule: 'it is older' },
    ],
    rule: 'bands, then fair share',
    quota: { tenant: 'lab', user: '', what: 'devices', limit: 8, used: 8 },
    predictedStartAtMs: Date.now() + 6 * 3_600_000 + 1000,
    suggestions: ['ask for fewer devices', 'leave --pool out'],
    tasks: { waiting: 3, running: 1 },
  });
  const { stdout, code, stderr } = await run(['why', 'j1']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.replace(/\(\d{4}-.*Z\)/, '(…)')).toBe(
    `
j1 PENDING: no room on 14 workers
  workers  12  too few free devices that match
            2  draining or out of contact
  tasks    3 wait, 1 run
  queue    3 of your jobs ahead (bands, then fair share)
           j8 train  production goes before batch
           j09       it is older
           and 1 more: drover queue
  quota    devices of tenant lab: 8 of 8 used
  start    in about 6h (…)
  try      ask for fewer devices
           leave --pool out
`.trimStart(),
  );
});

test('what there is nothing to say about is left out', async () => {
  const job = fake.jobs.get('j1')!;
  expect((await run(['why', 'j1'])).stdout).toBe(
    'j1 PENDING: no worker has joined yet\n  queue  next of your jobs (the oldest first)\n',
  );
  job.view.tasks.pending = 0;
  endJob(fake, job, { state: 'SUCCEEDED' });
  expect((await run(['why', 'j1'])).stdout).toBe('j1 SUCCEEDED: it has ended, SUCCEEDED\n');
});

test('a task is its job; --json is the whole answer', async () => {
  const { stdout } = await run(['why', 'j1.7', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ job: 'j1', code: 'NO_WORKER', suggestions: [] });
});

test('names cannot move the cursor', async () => {
  explain({ aheadSample: [{ job: 'j2', name: '\x1b[2J', rule: 'r' }], position: 2, ahead: 1 });
  expect((await run(['why', 'j1'])).stdout).not.toContain('\x1b');
});

test('bad input', async () => {
  expect(await run(['why'])).toMatchObject({ code: 2 });
  const none = await run(['why', 'j9']);
  expect(none.code).toBe(1);
  expect(none.stderr).toContain('there is no job j9');
});
