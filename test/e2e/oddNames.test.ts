/** Names with every kind of character, ids of every shape: kept whole, or refused with a code. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startJourney, type Journey } from '../support/journey.ts';
import { countJobs, expectProblem, unexpectedErrors } from '../support/problems.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=4,mem=1Gi'] });
});
afterAll(async () => {
  const unexpected = unexpectedErrors(journey);
  await journey.close();
  expect(unexpected).toEqual([]);
});

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
    expect(stdout.trim().split('\n')).toHaveLength((await countJobs(journey)) + 1);
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
