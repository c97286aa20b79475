/** Job files: shorthand, batches and what is wrong with them. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { capture } from './captured.ts';
import { startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
});
afterEach(() => fake.close());

const submit = (stdin: string, more: string[] = []) =>
  capture(['submit', '-f', '-', ...more], { url: fake.url, stdin });
const specs = () => [...fake.jobs.values()].map((job) => job.spec);

test('shorthand keys mean what the flags mean', async () => {
  const result = await submit(`
name: 42
command: python3 x.py | tee log
gpus: A100:2
cpus: 0.5
mem: 8G
gang: 4
time: 1-00:00:00
start-within: 90
workdir: /srv/lab/data
retries: 1
env: { EPOCHS: 3, DEBUG: true }
labels: { team: x }
`);
  expect(result).toMatchObject({ code: 0, stdout: 'j1\n', stderr: '' });
  expect(specs()).toEqual([
    {
      name: '42',
      command: ['/bin/sh', '-c', 'python3 x.py | tee log'],
      resources: {
        device: { kind: 'gpu', count: 2, models: ['A100'] },
        cpuMillis: 500,
        memoryBytes: 8 * 2 ** 30,
      },
      shape: { kind: 'gang', size: 4 },
      timeLimitMs: 86_400_000,
      startWithinMs: 90 * 60_000,
      workdir: '/srv/lab/data',
      retries: 1,
      env: { EPOCHS: '3', DEBUG: 'true' },
      labels: { team: 'x' },
    },
  ]);
});

test('the API’s own keys pass as they are', async () => {
  const spec = {
    command: ['true'],
    resources: { cpuMillis: 250, ports: 2 },
    shape: { kind: 'array', indices: [1, 5] },
    timeLimitMs: 5,
    graceMs: 1,
    maxInterruptions: 2,
    attemptLeaseMs: 60_000,
  };
  await submit(JSON.stringify(spec));
  expect(specs()).toEqual([spec]);
});

test('lists and documents are one batch, in order', async () => {
  const list = await submit('[{name: a, command: x}, {name: b, command: [y, 1]}]');
  expect(list.stdout).toBe('j1\nj2\n');
  const documents = await submit('name: c\ncommand: x\n---\nname: d\ncommand: y\n---\n');
  expect(documents.stdout).toBe('j3\nj4\n');
  const json = await submit('{"jobs": [{"command": ["x"]}, {"command": ["y"]}]}', ['--json']);
  expect(JSON.parse(json.stdout)).toEqual({ ids: ['j5', 'j6'] });
  expect(specs().map((spec) => spec.name)).toEqual(['a', 'b', 'c', 'd', undefined, undefined]);
  expect(fake.requests.map(({ path }) => path)).toEqual(Array(3).fill('/v1/jobs/batch'));
});

test('more than a batch goes in several', async () => {
  const jobs = Array.from({ length: 2001 }, () => ({ command: ['x'] }));
  const result = await submit(JSON.stringify(jobs));
  expect(result.stdout.trim().split('\n')).toHaveLength(2001);
  expect(fake.requests).toHaveLength(3);
});

test.each([
  ['comand: x', /unknown key "comand"\ntry: did you mean command\?/],
  ['command: x\ngpu: 1', /unknown key "gpu"\ntry: did you mean gpus\?/],
  ['- command: x\n- command: y\n  tiem: 3', /job 2: unknown key "tiem"\ntry: did you mean time\?/],
  ['name: x', /there is no command/],
  ['command: []', /command is neither/],
  ['command: {a: 1}', /command is neither/],
  ['command: x\nenv: 3', /env is not a list of names and values/],
  ['command: x\nenv: {A: [1]}', /env\.A is not a single value/],
  ['command: x\narray: 0-3\ngang: 2', /array and gang exclude/],
  ['command: x\ncpus: 1\nresources: {cpuMillis: 1}', /cpus and resources exclude/],
  ['command: x\ntime: soon', /time "soon" is not a duration/],
  ['command: x\ngang: 2\nnodes: 2', /gang is given twice/],
  ['command: [x\nname: y', /error USAGE: -: /],
  ['a: b: c', /error USAGE: -: /],
  ['hello', /is not a job/],
  ['- 1\n- 2', /job 1: is not a job/],
  ['', /holds no job/],
  ['[]', /holds no job/],
  ['\x00\x01\xff', /error USAGE/],
])('bad input %j', async (text, expected) => {
  const result = await submit(text);
  expect(result.code).toBe(2);
  expect(result.stderr).toMatch(expected);
  expect(result.stderr).not.toMatch(/\n\s+at /);
  expect(fake.requests).toEqual([]);
});

test('a missing file and a missing -f', async () => {
  const missing = await capture(['submit', '-f', 'none.yaml'], { url: fake.url });
  expect(missing.stderr).toContain('none.yaml cannot be read');
  expect((await capture(['submit'], { url: fake.url })).code).toBe(2);
});
