/** What is wrong with a submission: a code and what to try, never a 500, nothing half done. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startJourney, until, type CallOptions, type Journey } from '../support/journey.ts';
import { countJobs, expectProblem, unexpectedErrors } from '../support/problems.ts';

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
  const unexpected = unexpectedErrors(journey);
  await journey.close();
  expect(unexpected).toEqual([]);
});

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
    const before = await countJobs(journey);
    const answer = await journey.api('POST /v1/jobs', body);
    expectProblem(answer, status, code);
    expect(answer.body['detail']).toMatch(detail);
    const batch = await journey.api('POST /v1/jobs/batch', { jobs: [ok, body] });
    expectProblem(batch, status, code);
    expect(await countJobs(journey)).toBe(before);
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
    const before = await countJobs(journey);
    const answer = await journey.api('POST /v1/jobs', undefined, options);
    expectProblem(answer, status, code || answer.body['code']);
    expect(await countJobs(journey)).toBe(before);
  });

  test('a body that ends early, and one that is not HTTP', async () => {
    const before = await countJobs(journey);
    const cut = await overSocket(
      `POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${journey.token}\r\n` +
        'content-type: application/json\r\ncontent-length: 1000\r\n\r\n{"command":["true"]}',
      true,
    );
    expect(cut).not.toContain('HTTP/1.1 2');
    const nonsense = await overSocket('what is this\r\n\r\n', false);
    expect(nonsense).toContain('HTTP/1.1 400');
    expect(nonsense).toContain('application/problem+json');
    expect(await countJobs(journey)).toBe(before);
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

test('garbage in a log is followed byte for byte, and all is well after', async () => {
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
