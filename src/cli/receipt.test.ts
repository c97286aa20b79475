/** `drover receipt` as a person reads it, and its line at the end of a run. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { capture } from './captured.ts';
import { addJob, endJob } from './fakeJobs.ts';
import { startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
});
afterEach(() => fake.close());

const run = (args: string[], more: object = {}) => capture(args, { url: fake.url, ...more });

test('says what the server says, section by section', async () => {
  addJob(fake, { command: ['x'] });
  fake.receipts.set('j1', {
    name: 'train',
    state: 'FAILED',
    reason: 'out of memory',
    ranOn: [
      { worker: 'w1', name: 'gpu-1', pool: 'lab', devices: '2 x A100', attempts: 2, ms: 7_200_000 },
    ],
    time: { waitingMs: 60_000, startingMs: 0, runningMs: 7_000_000, stoppingMs: 2000 },
    lost: [{ fault: 'memory', attempts: 2, ms: 7_000_000, why: '' }],
    costMicros: 4_100_000,
    checkpoints: 3,
    next: ['ask for more memory: --mem 12G'],
  });
  const { stdout, code } = await run(['receipt', 'j1.0']);
  expect(stdout).toBe(
    'j1 train FAILED: out of memory\n' +
      '  ran on  gpu-1 (pool lab, 2 x A100), 2h in 2 attempts\n' +
      '  time    waiting 1m, running 1h56m, stopping 2s\n' +
      '  lost    1h56m to memory in 2 attempts\n' +
      '  cost    4.10\n' +
      '  saved   3 checkpoints, resumed 0 times\n' +
      '  next    ask for more memory: --mem 12G\n',
  );
  expect(code).toBe(0);
  const { stdout: json } = await run(['receipt', 'j1', '--json']);
  expect(JSON.parse(json)).toMatchObject({ job: 'j1', costMicros: 4_100_000 });
});

test('a job that does not exist is named', async () => {
  const { code, stderr } = await run(['receipt', 'j9']);
  expect(code).toBe(1);
  expect(stderr).toContain('there is no job j9');
});

test('a run on a terminal ends with its line, a piped one does not', async () => {
  fake.onSubmit = (job) => endJob(fake, job, { state: 'SUCCEEDED', exitCode: 0 });
  fake.receipts.set('j1', { line: 'job j1 succeeded: ran 2s on gpu-1', next: ['fetch it'] });
  expect((await run(['run', '--', 'x'], { columns: 80 })).stderr).toContain(
    'job j1 succeeded: ran 2s on gpu-1; fetch it\n',
  );
  expect((await run(['run', '--', 'x'])).stderr).toBe('');
});
