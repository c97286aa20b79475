/** The training surface over real HTTP, in front of a fake coordinator. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DroverError } from '../../lib/errors.ts';
import { blobHashOf } from '../../model/blob.ts';
import type { CheckpointView } from '../../protocol/jobs.ts';
import { BLOCK_LIMITS, EVALUATION_NAME } from './blocks.ts';
import { TRAINING_PREFIX } from './failure.ts';
import { startTestTraining, type TestTraining } from './testTraining.ts';

const BLOCKS = {
  model: { type: 'plain', title: 'a "b"\nc: d', ratio: 0.5 },
  data: { sets: ['a', 'b'] },
  training: { steps: 10 },
  resources: { cpus: 2 },
  checkpoint: {},
};
const PLAIN = [
  'evaluation: plain-evaluation',
  'code: plain',
  '---',
  'name: plain',
  'command: [run, {{ model.title | default("none") | json }}]',
  'resources: { cpuMillis: {{ (resources.cpus | default(1)) * 1000 | json }} }',
].join('\n');
const CHECKPOINT: CheckpointView = {
  ...{ task: 'j1.0', n: 3, attempt: 'a1', manifest: blobHashOf(Buffer.from('x')) },
  ...{ bytes: 5, files: 1, reason: 'end', createdAtMs: 1_000 },
};

let checkpoints: CheckpointView[] = [];
let training: TestTraining;
beforeAll(async () => {
  training = await startTestTraining({
    ownTemplates: true,
    overrides: {
      listCheckpoints: async (_who, _job, { limit }) => ({
        items: checkpoints.slice(0, limit),
        nextCursor: checkpoints.length > limit ? 'more' : null,
      }),
    },
  });
  training.template('plain', PLAIN);
  training.template(
    'plain-evaluation',
    'command: [score]\ninputs: [{ name: checkpoint, uri: {{ source.tree | json }} }]\n' +
      'env: { SAMPLES: {{ evaluation.samples | default(1) | string | json }} }',
  );
  mkdirSync(path.join(training.folder, 'plain'));
  writeFileSync(path.join(training.folder, 'plain/run'), '#!/bin/sh\n', { mode: 0o755 });
});
afterAll(() => training[Symbol.asyncDispose]());

const submit = async (blocks: object = BLOCKS): Promise<string> =>
  (await training.ask('POST /jobs', blocks)).data['job_id'];

test('five blocks become a job, and come back as they were sent', async () => {
  const sent = { name: 'mine', priority: 'interactive', ...BLOCKS };
  const { status, data } = await training.ask('POST /jobs', sent);
  expect(status).toBe(200);
  expect(data).toMatchObject({ ...sent, status: 'PENDING', error: null, tenant_id: 'main' });
  expect(data['created_at']).toBe('1970-01-01T00:00:00.001Z');
  const job = training.fake.jobs.get(data['job_id'])!;
  expect(job.spec).toMatchObject({
    name: 'mine',
    priority: 'interactive',
    command: ['run', BLOCKS.model.title],
    resources: { cpuMillis: 2000 },
    annotations: { model: JSON.stringify(BLOCKS.model), checkpoint: '{}' },
  });
  const bundle = job.spec!.code!.bundle as `sha256:${string}`;
  expect(await training.store.missing('main', [bundle])).toEqual([]);
  const again = await training.ask(`GET /jobs/${data['job_id']}`);
  expect(again.data).toEqual(data);
});

test('only the model is needed; training.template goes before its type', async () => {
  const { data } = await training.ask('POST /jobs', { model: { type: 'plain' } });
  expect(data).toMatchObject({ name: 'plain', training: {}, checkpoint: {} });
  const both = { model: { type: 'x' }, training: { template: 'plain' } };
  expect((await training.ask('POST /jobs', both)).status).toBe(200);
});

test('the same key gives the same job, another body a conflict', async () => {
  const headers = { 'idempotency-key': 'k1' };
  const first = await training.ask('POST /jobs', BLOCKS, { headers });
  const second = await training.ask('POST /jobs', BLOCKS, { headers });
  expect(second.data['job_id']).toBe(first.data['job_id']);
  expect(second.headers.get('idempotency-replayed')).toBe('true');
  const other = await training.ask('POST /jobs', { ...BLOCKS, name: 'x' }, { headers });
  expect([other.status, other.error['code']]).toEqual([409, 'IDEMPOTENCY_MISMATCH']);
});

let deep: unknown = 1;
for (let i = 0; i <= BLOCK_LIMITS.depth; i++) deep = [deep];

test.each([
  ['no model', {}, 'model: Invalid input'],
  ['a block that is no object', { model: BLOCKS.model, data: [1] }, 'data: Invalid input'],
  ['a block of another name', { ...BLOCKS, dataa: {} }, 'dataa: is not a known field'],
  ['no type', { model: {} }, 'model.type: there is no template ""'],
  ['a type that is no text', { model: { type: 7 } }, 'model.type: there is no template ""'],
  ['an unknown type', { model: { type: 'plian' } }, 'model.type: there is no template "plian"'],
  ['a value that fits nothing', { ...BLOCKS, resources: { cpus: 'many' } }, 'line 6: '],
  ['the name of evaluations', { ...BLOCKS, name: EVALUATION_NAME }, 'name: is the name of eval'],
  ['a priority', { ...BLOCKS, priority: 'first' }, 'priority: Invalid option'],
  ['too deep', { ...BLOCKS, data: { deep } }, 'data: is nested deeper than 32 levels'],
  [
    'too much',
    { ...BLOCKS, data: { text: 'x'.repeat(BLOCK_LIMITS.bytes) } },
    'bytes as JSON, the limit is 49152',
  ],
  [
    'a long name of a field',
    { model: { type: 'plain', ['x'.repeat(BLOCK_LIMITS.nameLength + 1)]: 1 } },
    'model.xxx',
  ],
])('wrong blocks are named: %s', async (_, body, message) => {
  const { status, error } = await training.ask('POST /jobs', body);
  expect([status, error['code']]).toEqual([400, 'INVALID_ARGUMENT']);
  expect(error['message']).toContain(message);
  expect(error['request_id']).toMatch(/./);
});

test('a body that would exhaust the stack is refused, not failed on', async () => {
  const body = `{"model": {"type": ${'['.repeat(50_000)}${']'.repeat(50_000)}}}`;
  const { status, error } = await training.ask('POST /jobs', body);
  expect([status, error['message']]).toEqual([400, 'model: is nested deeper than 32 levels']);
});

test('failures have this surface’s shape wherever they come from', async () => {
  const cases: [string, number, string][] = [
    ['GET /jobs/none', 404, 'NOT_FOUND'],
    ['GET /nothing', 404, 'NOT_FOUND'],
    ['DELETE /jobs', 405, 'METHOD_NOT_ALLOWED'],
    ['GET /jobs?page_size=0', 400, 'INVALID_ARGUMENT'],
    ['GET /jobs?page_token=x', 400, 'INVALID_ARGUMENT'],
    ['GET /evaluations/none', 404, 'NOT_FOUND'],
  ];
  for (const [request, status, code] of cases) {
    const answer = await training.ask(request);
    expect([answer.status, answer.error['code']], request).toEqual([status, code]);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.error['request_id']).toBe(answer.headers.get('x-request-id'));
  }
  const nobody = await training.ask('GET /jobs', undefined, { token: null });
  expect([nobody.status, nobody.error['code']]).toEqual([401, 'UNAUTHENTICATED']);
  expect(nobody.headers.get('www-authenticate')).toContain('Bearer');
  const reader = training.fake.tokenWith('jobs:read');
  const denied = await training.ask('POST /jobs', BLOCKS, { token: reader });
  expect([denied.status, denied.error['code']]).toEqual([403, 'PERMISSION_DENIED']);
});

test('what fails inside is not told', async () => {
  await using broken = await startTestTraining({
    overrides: {
      getJob: () => Promise.reject(new Error('canary secret')),
      queue: () => Promise.reject(new DroverError('UNAVAILABLE', 'the controller is away')),
    },
  });
  const { status, error } = await broken.ask('GET /jobs/j1');
  expect([status, error['code']]).toEqual([500, 'INTERNAL']);
  expect(JSON.stringify(error)).not.toContain('canary');
  expect((await broken.ask('GET /queue')).status).toBe(503);
});

test('lists come in pages, by state, and without evaluations', async () => {
  const ids = [await submit(), await submit()].toReversed();
  checkpoints = [CHECKPOINT];
  await training.ask('POST /evaluations', { job_id: ids[0] });
  const first = await training.ask('GET /jobs?page_size=2');
  expect(first.data['jobs'].map((job: { job_id: string }) => job.job_id)).toEqual([ids[0]]);
  const { next_page_token } = first.data;
  const second = await training.ask(`GET /jobs?page_size=1&page_token=${next_page_token}`);
  expect(second.data['jobs'][0]).toMatchObject({ job_id: ids[1], status: 'PENDING' });
  expect(second.data['jobs'][0]).not.toHaveProperty('model');
  const running = await training.ask('GET /jobs?status=RUNNING');
  expect(running.data).toEqual({ jobs: [], next_page_token: null });
  const wrong = await training.ask('GET /jobs?status=running');
  expect(wrong.error['message']).toContain('status: Invalid option');
});

test('a job is cancelled, and given another priority by POST and by PATCH', async () => {
  const id = await submit();
  for (const [method, priority] of [
    ['POST', 'production'],
    ['PATCH', 'batch'],
  ]) {
    const { status, data } = await training.ask(`${method} /jobs/${id}/priority`, { priority });
    expect([status, data['priority']]).toEqual([200, priority]);
  }
  const wrong = await training.ask(`PATCH /jobs/${id}/priority`, { priority: 5 });
  expect([wrong.status, wrong.error['violations'][0].path]).toEqual([400, 'priority']);
  const { data } = await training.ask(`POST /jobs/${id}/cancel`);
  expect(data).toMatchObject({ status: 'CANCELLED', ended_at: '1970-01-01T00:00:00.002Z' });
});

test('the queue, the cluster and its nodes', async () => {
  expect((await training.ask('GET /queue')).data).toEqual({ queue: [], next_page_token: null });
  expect((await training.ask('GET /cluster')).data).toMatchObject({
    ...{ cluster_id: 'c1', nodes: { online: 1 }, tasks: { running: 0 } },
  });
  const { nodes } = (await training.ask('GET /cluster/nodes')).data;
  expect(nodes).toMatchObject([
    { node_id: 'w1', status: 'ONLINE', total: { cpus: 1, gpus: 0 }, gpus: [] },
  ]);
});

test('checkpoints are listed', async () => {
  const id = await submit();
  checkpoints = [CHECKPOINT, { ...CHECKPOINT, n: 4 }];
  const { data } = await training.ask(`GET /jobs/${id}/checkpoints?page_size=1`);
  expect(data['next_page_token']).toBe('more');
  expect(data['checkpoints']).toMatchObject([
    { number: 3, created_at: '1970-01-01T00:00:01.000Z' },
  ]);
});

test('code counts for the quota of whoever submits', async () => {
  await using small = await startTestTraining({ tenantQuotaBytes: 100 });
  const { status, error } = await small.ask('POST /jobs', { model: { type: 'linear' } });
  expect([status, error['code']]).toEqual([422, 'OVER_QUOTA']);
  expect(small.fake.jobs.size).toBe(0);
});

test('every call is described, with the scope it needs', async () => {
  const response = await fetch(new URL('/openapi.json', training.url));
  const { paths } = (await response.json()) as {
    paths: Record<string, Record<string, { security: { bearer: string[] }[]; responses: object }>>;
  };
  const described = Object.entries(paths)
    .filter(([url]) => url.startsWith(TRAINING_PREFIX))
    .flatMap(([url, methods]) =>
      Object.entries(methods).map(([method, { security, responses }]) => {
        expect(Object.keys(responses), url).toEqual(expect.arrayContaining(['200', '401', '500']));
        return `${method} ${url.slice(TRAINING_PREFIX.length)} ${security[0]!.bearer[0]}`;
      }),
    );
  expect(described.toSorted()).toEqual([
    'get /cluster fleet:read',
    'get /cluster/nodes fleet:read',
    'get /evaluations jobs:read',
    'get /evaluations/{id} jobs:read',
    'get /jobs jobs:read',
    'get /jobs/{id} jobs:read',
    'get /jobs/{id}/checkpoints jobs:read',
    'get /jobs/{id}/logs jobs:read',
    'get /jobs/{id}/metrics/stream jobs:read',
    'get /queue jobs:read',
    'patch /jobs/{id}/priority jobs:manage',
    'post /evaluations jobs:manage',
    'post /jobs jobs:manage',
    'post /jobs/{id}/cancel jobs:manage',
    'post /jobs/{id}/priority jobs:manage',
  ]);
});
