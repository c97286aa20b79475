/** What is wrong with a request: a problem with a code and what to try, never a 500, nothing half done. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  startJourney,
  until,
  type Answer,
  type CallOptions,
  type Journey,
} from '../support/journey.ts';

let journey: Journey;
beforeAll(async () => {
  const home = mkdtempSync(path.join(tmpdir(), 'drover-journey-'));
  const config = path.join(home, 'config.yaml');
  writeFileSync(
    config,
    'fleet:\n  pools:\n    small: {largestWorker: {cpus: 2, memoryBytes: 1073741824}}\n' +
      '    gpu: {largestWorker: {cpus: 8, gpus: 2, gpuModel: A100}}\n' +
      'server:\n  bodyLimitBytes: 1048576\n',
  );
  journey = await startJourney({
    home,
    args: ['--resources', 'cpus=4,mem=1Gi'],
    env: { DROVER_CONFIG: config },
  });
});
afterAll(async () => {
  // Whatever was sent, the server never met an error it did not expect.
  const unexpected = journey
    .log()
    .split('\n')
    .filter((line) => /"level":[56]0/.test(line));
  await journey.close();
  expect(unexpected).toEqual([]);
});

async function countJobs(): Promise<number> {
  let count = 0;
  for (let cursor: string | undefined; ;) {
    const page = await journey.client.listJobs({ limit: 500, cursor });
    count += page.items.length;
    if (page.nextCursor === null) return count;
    cursor = page.nextCursor;
  }
}

/** A refusal that a person can do something with. */
function expectProblem(answer: Answer, status: number, code: string): void {
  expect([answer.status, answer.body['code']]).toEqual([status, code]);
  expect(answer.headers.get('content-type')).toContain('application/problem+json');
  const { title, detail, requestId, hint } = answer.body;
  for (const text of [title, detail, requestId, hint]) expect(text).toEqual(expect.any(String));
  expect(detail).not.toBe('');
  expect(answer.text).not.toMatch(/ {4}at |\.ts:\d|node:internal|SQLITE|SELECT /);
}

const ok = { command: ['true'] };
const many = (count: number, length: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`V${n}`, 'x'.repeat(length)]));

describe('submissions', () => {
  const cases: [string, unknown, number, string, RegExp][] = [
    [
      'an unknown field',
      { comand: ['true'] },
      400,
      'INVALID_ARGUMENT',
      /comand.*not a known field/,
    ],
    ['a field of another type', { command: 'true' }, 400, 'INVALID_ARGUMENT', /command/],
    ['a number for a name', { ...ok, name: 7 }, 400, 'INVALID_ARGUMENT', /name/],
    ['no command', {}, 400, 'INVALID_ARGUMENT', /command/],
    ['an empty command', { command: [] }, 400, 'INVALID_ARGUMENT', /command/],
    ['an empty program', { command: ['', 'x'] }, 400, 'INVALID_ARGUMENT', /command.0/],
    ['a list', [ok], 400, 'INVALID_ARGUMENT', /./],
    ['null', null, 400, 'INVALID_ARGUMENT', /./],
    ['text', 'true', 400, 'INVALID_ARGUMENT', /./],
    ['NUL in a word', { command: ['a\0b'] }, 400, 'INVALID_ARGUMENT', /command.0/],
    ['half a character in a name', { ...ok, name: 'a\ud800' }, 400, 'INVALID_ARGUMENT', /name/],
    ['NUL in a name', { ...ok, name: 'a\0' }, 400, 'INVALID_ARGUMENT', /name/],
    ['a name of 201', { ...ok, name: 'x'.repeat(201) }, 400, 'INVALID_ARGUMENT', /name/],
    ['a bad variable', { ...ok, env: { 'A=B': 'x' } }, 400, 'INVALID_ARGUMENT', /env/],
    ['an environment too large', { ...ok, env: many(300, 1000) }, 400, 'INVALID_ARGUMENT', /env/],
    ['too many variables', { ...ok, env: many(5000, 1) }, 400, 'INVALID_ARGUMENT', /env/],
    ['a word too long', { command: ['x'.repeat(140_000)] }, 400, 'INVALID_ARGUMENT', /command/],
    ['too many words', { command: Array(5000).fill('x') }, 400, 'INVALID_ARGUMENT', /command/],
    ['minus retries', { ...ok, retries: -1 }, 400, 'INVALID_ARGUMENT', /retries/],
    ['half a retry', { ...ok, retries: 0.5 }, 400, 'INVALID_ARGUMENT', /retries/],
    ['no CPU', { ...ok, resources: { cpuMillis: 0 } }, 400, 'INVALID_ARGUMENT', /cpuMillis/],
    [
      'a nested unknown',
      { ...ok, resources: { cpus: 1 } },
      400,
      'INVALID_ARGUMENT',
      /resources.cpus/,
    ],
    [
      'an empty array',
      { ...ok, shape: { kind: 'array', indices: [] } },
      400,
      'INVALID_ARGUMENT',
      /shape/,
    ],
    [
      'an index twice',
      { ...ok, shape: { kind: 'array', indices: [1, 1] } },
      400,
      'INVALID_ARGUMENT',
      /twice/,
    ],
    ['another shape', { ...ok, shape: { kind: 'ring' } }, 400, 'INVALID_ARGUMENT', /shape/],
    [
      'a gang too large',
      { ...ok, shape: { kind: 'gang', size: 5000 } },
      400,
      'INVALID_ARGUMENT',
      /size/,
    ],
    ['no such pool', { ...ok, pool: 'nowhere' }, 422, 'NEVER_FITS', /nowhere.*default/],
    [
      'more than its pool has',
      { ...ok, pool: 'small', resources: { cpuMillis: 3000 } },
      422,
      'NEVER_FITS',
      /small.*cpus/,
    ],
    [
      'GPUs where none are',
      { ...ok, pool: 'small', resources: { device: {} } },
      422,
      'NEVER_FITS',
      /small.*devices/,
    ],
    [
      'a model its pool lacks',
      { ...ok, pool: 'gpu', resources: { device: { models: ['H100'] } } },
      422,
      'NEVER_FITS',
      /gpu.*devices/,
    ],
  ];
  test.for(cases)('%s', async ([, body, status, code, detail]) => {
    const before = await countJobs();
    const answer = await journey.api('POST /v1/jobs', body);
    expectProblem(answer, status, code);
    expect(answer.body['detail']).toMatch(detail);
    const batch = await journey.api('POST /v1/jobs/batch', { jobs: [ok, body] });
    expectProblem(batch, status, code);
    expect(await countJobs()).toBe(before);
  });

  test('the nearest name is offered', async () => {
    const { body } = await journey.api('POST /v1/jobs', { comand: ['true'] });
    expect(body['hint']).toBe('Did you mean command instead of comand?');
    const { body: nested } = await journey.api('POST /v1/jobs', {
      ...ok,
      resources: { cpuMilis: 1 },
    });
    expect(nested['hint']).toContain('cpuMillis');
  });

  test.for([
    ['cut JSON', { raw: '{"command": ["true"' }, 400, 'MALFORMED_BODY'],
    ['no JSON', { raw: 'command=true' }, 400, 'MALFORMED_BODY'],
    [
      'not UTF-8',
      { raw: Buffer.from('{"command":["\xff\xfe"]}', 'latin1') },
      400,
      'MALFORMED_BODY',
    ],
    ['an empty body', { raw: '' }, 400, 'INVALID_ARGUMENT'],
    [
      'another type',
      { raw: 'a: b', headers: { 'content-type': 'text/yaml' } },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'too large',
      { raw: JSON.stringify({ command: ['x'.repeat(1_100_000)] }) },
      413,
      'BODY_TOO_LARGE',
    ],
    ['a prototype', { raw: '{"command":["true"],"__proto__":{"a":1}}' }, 400, ''],
    [
      'a key too long',
      { raw: '{"command":["true"]}', headers: { 'idempotency-key': 'k'.repeat(10_000) } },
      400,
      '',
    ],
    ['an empty key', { raw: '{"command":["true"]}', headers: { 'idempotency-key': '' } }, 400, ''],
    ['deeply nested', { raw: `${'['.repeat(50_000)}${']'.repeat(50_000)}` }, 400, ''],
  ] as [string, CallOptions, number, string][])('%s', async ([, options, status, code]) => {
    const before = await countJobs();
    const answer = await journey.api('POST /v1/jobs', undefined, options);
    expectProblem(answer, status, code || answer.body['code']);
    expect(await countJobs()).toBe(before);
  });

  test('a body that ends early, and one that is not HTTP', async () => {
    const before = await countJobs();
    const cut = await overSocket(
      `POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${journey.token}\r\n` +
        'content-type: application/json\r\ncontent-length: 1000\r\n\r\n{"command":["true"]}',
      true,
    );
    expect(cut).not.toContain('HTTP/1.1 2');
    const nonsense = await overSocket('what is this\r\n\r\n', false);
    expect(nonsense).toContain('HTTP/1.1 400');
    expect(nonsense).toContain('application/problem+json');
    expect(await countJobs()).toBe(before);
  });
});

function overSocket(text: string, leave: boolean): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(journey.url);
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
    if (leave) setTimeout(() => socket.destroy(), 200);
    else setTimeout(() => socket.end(), 1000);
  });
}

describe('names with every kind of character', () => {
  const names = [
    `it's "quoted" \`so\` $HOME; rm -rf / & | > < * ? \\`,
    'two\nlines\r\n\tand a tab',
    'größe 大きい 🐑👩‍👩‍👧‍👦 e\u0301',
    '\u202eright to left\u202c مرحبا שלום',
    '\u0001\u001b[31mred\u001b[0m\u0007\u007f\u0085\u200b\ufeff',
    "'; DROP TABLE jobs; --",
    '../../etc/passwd %00 %2e%2e <script>alert(1)</script>',
    '{{7*7}} ${7*7} %s %d %n',
    'x'.repeat(200),
    '🐑'.repeat(100),
    ' ',
    '__proto__',
    '\ufffe\uffff',
  ];
  test.for(names)('%j', async (name) => {
    const env = { TEXT: name };
    const spec = {
      name,
      command: ['printf', '%s', name],
      env,
      labels: { note: name.slice(0, 200) },
    };
    const submitted = await journey.api('POST /v1/jobs', spec);
    expect(submitted.status).toBe(201);
    const id = submitted.body['data'].id as string;
    const job = await journey.ended(id);
    expect([job.name, job.spec?.env, job.spec?.labels]).toEqual([name, env, spec.labels]);
    expect(job).toMatchObject({ state: 'SUCCEEDED' });
    const found = await journey.client.listJobs({ name });
    expect(found.items.map((one) => one.id)).toContain(id);
    let output = '';
    for await (const record of journey.client.followLogs(id)) output += record.text ?? '';
    expect(output).toBe(name);
  });

  test('in a table they cannot move the cursor or hide a line', async () => {
    const { stdout } = await journey.drover('jobs', '--all');
    // oxlint-disable-next-line no-control-regex
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    expect(stdout.trim().split('\n')).toHaveLength((await countJobs()) + 1);
  });
});

describe('ids and addresses', () => {
  const ids = [
    'nope',
    'j',
    '0',
    '-1',
    'j1.0',
    "' OR 1=1 --",
    '../../../etc/passwd',
    '..',
    '.',
    '%00',
    '%',
    '%ff',
    'null',
    'undefined',
    '__proto__',
    'constructor',
    'j'.repeat(101),
    'j'.repeat(20_000),
    '🐑',
    '\u202e',
    'a/b',
    '*',
  ];
  const routes = [
    'GET /v1/jobs/ID',
    'GET /v1/jobs/ID/wait?waitMs=0',
    'GET /v1/jobs/ID/tasks',
    'GET /v1/jobs/ID/attempts',
    'GET /v1/jobs/ID/events',
    'GET /v1/jobs/ID/logs',
    'GET /v1/jobs/ID/logs?follow=true',
    'POST /v1/jobs/ID/cancel',
    'DELETE /v1/jobs/ID',
    'POST /v1/workers/ID/drain',
    'POST /v1/workers/ID/undrain',
    'DELETE /v1/tokens/ID',
    'GET /v1/tasks/ID/exec',
  ];
  test.for(routes)('%s', async (route) => {
    for (const id of ids) {
      for (const written of new Set([encodeURIComponent(id), /^[!-~]+$/.test(id) ? id : ''])) {
        if (written === '') continue;
        const answer = await journey.api(route.replace('ID', written));
        const allowed = [400, 404, 405, 414, 426, 431];
        expect([
          route,
          written.slice(0, 40),
          allowed.includes(answer.status),
          answer.status,
        ]).toEqual([route, written.slice(0, 40), true, answer.status]);
        expect(answer.body['code']).toEqual(expect.any(String));
      }
    }
  });

  test.for([
    ['a cursor of nobody', 'GET /v1/jobs?cursor=nonsense', 400],
    ['a cursor of another list', 'GET /v1/jobs?cursor=W10', 400],
    ['a cursor too long', `GET /v1/jobs?cursor=${'x'.repeat(300)}`, 400],
    ['workers', 'GET /v1/workers?cursor=%00%ff', 400],
    ['tokens', 'GET /v1/tokens?cursor=e30', 400],
    ['the queue', 'GET /v1/queue?cursor=bm9wZQ', 400],
    ['no entries', 'GET /v1/jobs?limit=0', 400],
    ['too many', 'GET /v1/jobs?limit=501', 400],
    ['minus', 'GET /v1/jobs?limit=-1', 400],
    ['no number', 'GET /v1/jobs?limit=ten', 400],
    ['no such state', 'GET /v1/jobs?state=WAITING', 400],
    ['an unknown filter', 'GET /v1/jobs?stat=RUNNING', 400],
    ['the same filter twice', 'GET /v1/jobs?state=RUNNING&state=FAILED', 400],
    ['no such address', 'GET /v1/nothing', 404],
    ['another method', 'PUT /v1/jobs', 405],
    ['a bad escape', 'GET /v1/%zz', 400],
  ] as const)('%s', async ([, request, status]) => {
    const answer = await journey.api(request);
    expect(answer.status).toBe(status);
    expectProblem(answer, status, answer.body['code']);
  });

  test.for([
    ['none', ''],
    ['another', 'drv_0'],
    ['no ASCII', 'ü'],
    ['very long', 'x'.repeat(8000)],
  ])('a token: %s', async ([, token]) => {
    const headers: Record<string, string> = {};
    if (token !== '') headers['authorization'] = `Bearer ${token}`;
    const answer = await journey.api('GET /v1/jobs', undefined, { token: '', headers });
    expectProblem(answer, 401, 'UNAUTHENTICATED');
    expect(answer.headers.get('www-authenticate')).toContain('Bearer');
  });

  test('a task of a job that has fewer, and logs of it', async () => {
    const id = await journey.submit({ command: ['true'] });
    await journey.ended(id);
    for (const request of [`GET /v1/jobs/${id}/logs?task=9`, `GET /v1/jobs/${id}/logs?task=-1`]) {
      const { status } = await journey.api(request);
      expect([200, 400, 404]).toContain(status);
    }
    const { code, stderr } = await journey.drover('logs', `${id}.9`);
    expect([code, stderr.includes('Error')]).toEqual([code, false]);
  });
});

describe('the command line says the same', () => {
  const cases: [string[], number, RegExp][] = [
    [['run', '--pool', 'nowhere', '--', 'true'], 125, /error NEVER_FITS: .*nowhere[^]*try: /],
    [
      ['run', '--pool', 'small', '--cpus', '3', '--', 'true'],
      125,
      /error NEVER_FITS: .*small[^]*try: /,
    ],
    [
      ['run', '--priority', 'urgent', '--', 'true'],
      125,
      /error INVALID_ARGUMENT: priority[^]*try: /,
    ],
    [['run', '--env', 'A-B=1', '--', 'true'], 125, /error [A-Z_]+: .*A-B[^]*try: /],
    [
      ['run', '--name', 'x'.repeat(201), '--', 'true'],
      125,
      /error INVALID_ARGUMENT: name[^]*try: /,
    ],
    [['submit', '-f', '/etc/hostname'], 2, /error USAGE: [^]*try: /],
    [['jobs', '--state', 'waiting'], 2, /error USAGE: .*waiting[^]*try: pending/],
    [['job', "' OR 1=1 --"], 1, /error NOT_FOUND: [^]*try: /],
    [['job', '../../v1/tokens'], 1, /error NOT_FOUND: [^]*try: /],
  ];
  test.for(cases)('%j', async ([args, expected, words]) => {
    const { code, stdout, stderr } = await journey.drover(...args);
    expect(code).toBe(expected);
    expect(stderr).toMatch(words);
    expect(stdout + stderr).not.toMatch(/\n {4}at /);
  });

  test('--json gives the error as JSON', async () => {
    const { code, stderr } = await journey.drover('job', 'nope', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: 'NOT_FOUND', try: expect.any(String) },
    });
  });
});

test('garbage in a log is followed byte for byte, and the server is as well as before', async () => {
  const program =
    'import os\nfor i in range(50): os.write(1, os.urandom(3000) + b"\\0\\r\\n\\x1b[2J")';
  const typed = journey.start([
    'run',
    '--',
    'sh',
    '-c',
    `python3 -c '${program}' | tee ${journey.home}/copy`,
  ]);
  const { bytes, code } = await typed.ended;
  const copy = await journey.start(['run', '--', 'cat', `${journey.home}/copy`]).ended;
  expect([code, bytes.length, bytes.equals(copy.bytes)]).toEqual([0, 50 * 3007, true]);
  await until('ready', async () => (await journey.api('GET /readyz')).status === 200);
});
