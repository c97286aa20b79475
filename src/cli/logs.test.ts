/** `drover logs` and `drover wait` against a server. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JobView } from '../protocol/jobs.ts';
import { capture } from './captured.ts';
import { addJob, addOutput, endJob, type FakeJob } from './fakeJobs.ts';
import { send, startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
});
afterEach(() => fake.close());

const run = (args: string[]) => capture(args, { url: fake.url });
const log = (job: FakeJob, text: string): void => addOutput(fake, job, text);
const succeeded: Partial<JobView> = { state: 'SUCCEEDED', exitCode: 0 };

describe('wait', () => {
  test('returns the code of a job that ends meanwhile', async () => {
    const job = addJob(fake, { command: ['x'] });
    setTimeout(() => endJob(fake, job, { state: 'FAILED', exitCode: 4 }), 50);
    const result = await run(['wait', 'j1']);
    expect(result).toMatchObject({ code: 4, stdout: 'j1 FAILED\n' });
  });

  test('gives up after --timeout', async () => {
    addJob(fake, { command: ['x'] });
    const result = await run(['wait', 'j1', '--timeout', '50ms']);
    expect(result.code).toBe(125);
    expect(result.stderr).toContain('error TIMEOUT: job j1 is still PENDING');
  });

  test('several jobs: the first bad code', async () => {
    endJob(fake, addJob(fake, { command: ['x'] }), succeeded);
    endJob(fake, addJob(fake, { command: ['x'] }), { state: 'FAILED', exitCode: 9 });
    const result = await run(['wait', 'j1', 'j2', '--json']);
    expect(result.code).toBe(9);
    const lines = result.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([{ exitCode: 0 }, { exitCode: 9, job: { id: 'j2' } }]);
  });
});

describe('logs', () => {
  test('all pages of what is there, without waiting', async () => {
    const job = addJob(fake, { command: ['x'] });
    for (let n = 1; n <= 5; n++) log(job, `${n}\n`);
    expect(await run(['logs', 'j1'])).toMatchObject({ code: 0, stdout: '1\n2\n3\n4\n5\n' });
    const { stdout } = await run(['logs', 'j1', '--json']);
    expect(stdout.trim().split('\n')).toHaveLength(5);
  });

  test('of a job that has just ended the last lines are waited for', async () => {
    const job = addJob(fake, { command: ['x'] });
    log(job, '1\n');
    endJob(fake, job, succeeded);
    job.logEnded = false;
    setTimeout(() => {
      job.logEnded = true;
      log(job, '2\n');
    }, 100);
    expect(await run(['logs', 'j1'])).toMatchObject({ code: 0, stdout: '1\n2\n', stderr: '' });
  });

  test('-f goes on to the end', async () => {
    const job = addJob(fake, { command: ['x'] });
    log(job, '1\n');
    setTimeout(() => log(job, '2\n'), 30);
    setTimeout(() => endJob(fake, job, succeeded), 60);
    expect(await run(['logs', '-f', 'j1'])).toMatchObject({ code: 0, stdout: '1\n2\n' });
  });

  test('task, tail and since are asked of the server', async () => {
    addJob(fake, { command: ['x'], shape: { kind: 'gang', size: 2 } });
    await run(['logs', 'j1.1', '--tail', '5', '--since', '10m']);
    const { query } = fake.requests.at(-1)!;
    expect([query.get('task'), query.get('tail')]).toEqual(['1', '5']);
    expect(Date.now() - Number(query.get('since'))).toBeGreaterThanOrEqual(600_000);
  });

  test('a problem in the stream: a passing one is tried again, another is told', async () => {
    const job = addJob(fake, { command: ['x'] });
    log(job, '1\n');
    endJob(fake, job, succeeded);
    let problems = [{ status: 503, code: 'UNAVAILABLE', detail: 'restarting' }];
    fake.intercept = (request, response) => {
      const next = request.path.endsWith('/logs') && problems.shift();
      if (!next) return false;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`retry: 1000\n\n:\n\nevent: problem\ndata: ${JSON.stringify(next)}\n\n`);
      return true;
    };
    expect(await run(['logs', '-f', 'j1'])).toMatchObject({ code: 0, stdout: '1\n' });
    problems = [{ status: 500, code: 'INTERNAL', detail: 'a segment is damaged' }];
    const failed = await run(['logs', '-f', 'j1']);
    expect(failed).toMatchObject({ code: 1, stderr: 'error INTERNAL: a segment is damaged\n' });
  });

  test('an empty page in the middle is not the end', async () => {
    const job = addJob(fake, { command: ['x'] });
    fake.intercept = (request, response) => {
      if (!request.path.endsWith('/logs') || request.query.get('after') !== null) return false;
      send(response, 200, { data: [], meta: { next: 2, complete: false } });
      return true;
    };
    for (let n = 1; n <= 3; n++) log(job, `${n}\n`);
    expect(await run(['logs', 'j1.0'])).toMatchObject({ code: 0, stdout: '3\n' });
  });

  test('an unknown job', async () => {
    const result = await run(['logs', '-f', 'j9']);
    expect(result).toMatchObject({ code: 1, stderr: 'error NOT_FOUND: there is no job j9\n' });
  });
});
