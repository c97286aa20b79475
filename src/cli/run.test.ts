/** `drover run` against a server: flags, exact bytes, resume, Ctrl-C, bad input. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JobView, LogRecordView } from '../protocol/jobs.ts';
import { capture } from './captured.ts';
import { addOutput, endJob, type FakeJob } from './fakeJobs.ts';
import { problem, startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
});
afterEach(() => fake.close());

const run = (args: string[], options: object = {}) => capture(args, { url: fake.url, ...options });

const log = (job: FakeJob, output: string | Buffer, more: Partial<LogRecordView> = {}): void =>
  addOutput(fake, job, output, more);

function finishes(end: Partial<JobView>, output?: (job: FakeJob) => void) {
  fake.onSubmit = (job) => {
    output?.(job);
    endJob(fake, job, end);
  };
}

const succeeded: Partial<JobView> = { state: 'SUCCEEDED', exitCode: 0 };

describe('run', () => {
  test('every flag arrives in the specification', async () => {
    finishes(succeeded);
    const flags =
      '--gpus A100:2 --cpus 4 --mem 8G --array 0,2%1 --pool p --env A=1 --env HERE ' +
      '--workdir /srv/lab/sub --retries 2 --time 1-00:00:00 --start-within 2h ' +
      '--priority interactive --name n --label team=x --ports 1';
    const result = await run(['run', ...flags.split(' '), '--', 'python3', '-c', '--x'], {
      env: { HERE: 'there' },
    });
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(fake.jobs.get('j1')!.spec).toEqual({
      command: ['python3', '-c', '--x'],
      name: 'n',
      pool: 'p',
      priority: 'interactive',
      workdir: '/srv/lab/sub',
      retries: 2,
      timeLimitMs: 86_400_000,
      startWithinMs: 7_200_000,
      resources: {
        device: { kind: 'gpu', count: 2, models: ['A100'] },
        cpuMillis: 4000,
        memoryBytes: 8 * 2 ** 30,
        ports: 1,
      },
      shape: { kind: 'array', indices: [0, 2], limit: 1 },
      env: { A: '1', HERE: 'there' },
      labels: { team: 'x' },
    });
  });

  test('output is byte-exact on both streams, and the code is the job’s', async () => {
    const garbage = Buffer.from([0, 255, 254, 10, 13, 27, 128, 0]);
    finishes({ state: 'FAILED', exitCode: 7 }, (job) => {
      log(job, 'plain ünïcode, no newline');
      log(job, garbage);
      log(job, Buffer.from([0xc3]), { stream: 'stderr' });
      log(job, Buffer.from([0xa9]), { stream: 'stderr' });
    });
    const result = await run(['run', '--', 'x']);
    expect(result.code).toBe(7);
    const plain = Buffer.from('plain ünïcode, no newline');
    expect(result.stdoutBytes).toEqual(Buffer.concat([plain, garbage]));
    expect(result.stderrBytes.subarray(0, 2)).toEqual(Buffer.from([0xc3, 0xa9]));
  });

  test('an array’s lines are whole and carry their index', async () => {
    finishes(succeeded, (job) => {
      log(job, 'a0 ', { index: 0 });
      log(job, 'b0\n', { index: 1 });
      log(job, 'a1\na2', { index: 0 });
      log(job, 'warn\n', { index: 1, stream: 'stderr' });
    });
    const result = await run(['run', '--array', '0-1', '--', 'x']);
    expect(result.stdout).toBe('[1] b0\n[0] a0 a1\n[0] a2\n');
    expect(result.stderr).toBe('[1] warn\n');
  });

  test('a cut stream is resumed without gap or duplicate', async () => {
    let opened = 0;
    fake.intercept = (request, response) => {
      if (!request.path.endsWith('/logs') || ++opened > 3) return false;
      const job = fake.jobs.get('j1')!;
      if (opened === 2) {
        problem(response, 503, 'UNAVAILABLE', 'starting');
        return true;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      // The last record is cut in the middle of its data; the third stream repeats what was had.
      const records = job.records.slice(0, opened === 1 ? 2 : 4);
      for (const record of records) {
        response.write(`event: log\nid: ${record.seq}\ndata: ${JSON.stringify(record)}\n\n`);
      }
      response.write(`event: log\nid: 9\ndata: {"seq":9`, () => response.destroy());
      return true;
    };
    finishes(succeeded, (job) => {
      for (let n = 1; n <= 6; n++) log(job, `line ${n}\n`);
    });
    const result = await run(['run', '--', 'x']);
    expect(result.stdout).toBe('line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n');
    expect(result.code).toBe(0);
    const streams = fake.requests.filter(({ path }) => path.endsWith('/logs'));
    const ids = streams.map(({ headers }) => headers['last-event-id']);
    expect(ids).toEqual([undefined, '2', '2', '4']);
  });

  test('a submission whose answer was lost is one job', async () => {
    finishes(succeeded);
    fake.intercept = loseFirstAnswer();
    const result = await run(['run', '--', 'x']);
    expect(result.code).toBe(0);
    expect(fake.jobs.size).toBe(1);
    const posts = fake.requests.filter(({ method }) => method === 'POST');
    expect(posts).toHaveLength(2);
    expect(posts[0]!.headers['idempotency-key']).toBe(posts[1]!.headers['idempotency-key']);
  });

  test('how a job ended is told when no code says it', async () => {
    finishes({ state: 'CANCELLED', reason: 'cancelled by bob' });
    const result = await run(['run', '--', 'x']);
    expect(result.code).toBe(130);
    expect(result.stderr).toBe('drover: job j1 CANCELLED: cancelled by bob; more: drover job j1\n');
  });

  test('--json prints the job, its records and the end', async () => {
    finishes(succeeded, (job) => log(job, 'hi\n'));
    const { stdout } = await run(['run', '--json', '--', 'x']);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([
      { type: 'job', id: 'j1' },
      { type: 'log', seq: 1, text: 'hi\n' },
      { type: 'end', exitCode: 0, job: { state: 'SUCCEEDED' } },
    ]);
  });

  test('-d prints the id and leaves', async () => {
    expect(await run(['run', '-d', '--', 'x'])).toMatchObject({ code: 0, stdout: 'j1\n' });
    const { stdout } = await run(['run', '-d', '--json', '--', 'x']);
    expect(JSON.parse(stdout)).toEqual({ id: 'j2', state: 'PENDING' });
  });

  test('a terminal is told why the job waits', async () => {
    fake.onSubmit = (job) => {
      job.view.reason = 'no worker has a free A100';
      setTimeout(() => log(job, 'started\n'), 1300);
      setTimeout(() => endJob(fake, job, succeeded), 1350);
    };
    const { stderr, stdout } = await run(['run', '--', 'x'], { columns: 80 });
    expect(stderr).toContain('job j1 waits: no worker has a free A100');
    const [, shown = ''] = stderr.split('\r\x1b[2K').slice(-2);
    expect(shown).toMatch(/job j1 SUCCEEDED: ran \d+ ms\n$/);
    expect(stdout).toBe('started\n');
  });

  test('Ctrl-C detaches; a second one cancels', async () => {
    let press: () => void;
    fake.onSubmit = () => setTimeout(() => press(), 100);
    const detached = await run(['run', '--', 'x'], { onReady: (p: () => void) => (press = p) });
    expect(detached.code).toBe(130);
    expect(detached.stderr).toContain('drover cancel j1');
    expect(fake.jobs.get('j1')!.view.state).toBe('PENDING');

    fake.onSubmit = () => {
      setTimeout(() => press(), 100);
      setTimeout(() => press(), 200);
    };
    const cancelled = await run(['run', '--', 'x'], { onReady: (p: () => void) => (press = p) });
    expect(cancelled.code).toBe(130);
    expect(fake.jobs.get('j2')!.view.state).toBe('CANCELLED');
  });

  test.each([
    [['run'], 'there is no command'],
    [['run', '--'], 'there is no command'],
    [['run', 'echo', 'hi'], 'the command goes after --'],
    [['run', '--gpu', '1', '--', 'x'], 'did you mean --gpus?'],
    [['run', '--imgae', 'i', '--', 'x'], 'did you mean --image'],
    [['run', '--array', '0', '--gang', '2', '--', 'x'], '--array and --gang exclude each other'],
    [['run', '--gang', '0', '--', 'x'], '--gang "0" is not a whole number from 1 up'],
    [['run', '--env', 'NOT_SET', '--', 'x'], 'it is not set here'],
    [['run', '--env', '1A=x', '--', 'x'], 'is not a variable name'],
    [['run', '--env-file', 'none.env', '--', 'x'], '--env-file'],
    [['run', '--label', 'x', '--', 'x'], '--label NAME=VALUE'],
    [['run', '--time', 'soon', '--', 'x'], '--time "soon" is not a duration'],
    [['run', '--mem', '64', '--', 'x'], 'write a number with its unit'],
    [['run', '--retries', '-1', '--', 'x'], '--retries needs a value'],
    [['run', '--retries=-1', '--', 'x'], 'not a whole number'],
  ])('bad input %j', async (args, expected) => {
    const result = await run(args);
    expect(result.code).toBe(125);
    expect(result.stderr).toContain(expected);
    expect(result.stderr).toMatch(/^error USAGE: .*\ntry: .*\n$/);
    expect(fake.requests).toEqual([]);
  });

  test('what the server refuses is shown with its code and fields', async () => {
    fake.intercept = (_, response) => {
      const violations = [
        { path: 'name', message: 'is too long' },
        { path: 'env', message: 'is too large' },
      ];
      const body = { code: 'INVALID_ARGUMENT', detail: 'two fields are wrong', violations };
      response.writeHead(400).end(JSON.stringify(body));
      return true;
    };
    const result = await run(['run', '--', 'x']);
    expect(result.code).toBe(125);
    expect(result.stderr).toBe(
      'error INVALID_ARGUMENT: two fields are wrong\n  name: is too long\n  env: is too large\n',
    );
  });
});

/** The job is accepted, then the connection breaks before the answer. */
function loseFirstAnswer(): FakeServer['intercept'] {
  let lost = false;
  return (request, response) => {
    if (request.method !== 'POST' || lost) return false;
    lost = true;
    response.end = () => response.destroy();
    return false;
  };
}
