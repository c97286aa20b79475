/** Jobs over HTTP: submit, batch, keys, lists, wait and cancel. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { JOB_LIMITS } from '../../protocol/jobSpec.ts';
import { startTestGateway, type TestGateway } from '../testGateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());

const job = { command: ['true'] };

test('a submitted job is answered with its id, and is there', async () => {
  const { status, json, headers } = await gateway.call('POST', '/v1/jobs', { body: job });
  expect(status).toBe(201);
  expect(headers.get('content-type')).toMatch(/^application\/json/);
  expect(json).toEqual({ data: { id: json.data.id, state: 'PENDING' }, meta: {} });
  const read = await gateway.call('GET', `/v1/jobs/${json.data.id}`);
  expect(read.status).toBe(200);
  expect(read.json.data).toMatchObject({ id: json.data.id, spec: { graceMs: 10_000, ...job } });
});

test('a batch is accepted whole, or refused whole naming the wrong job', async () => {
  const { status, json } = await gateway.call('POST', '/v1/jobs/batch', {
    body: { jobs: [job, job, job] },
  });
  expect(status).toBe(201);
  expect(json.data.ids).toHaveLength(3);

  const before = gateway.fake.jobs.size;
  const wrong = await gateway.call('POST', '/v1/jobs/batch', {
    body: { jobs: [job, { command: [] }] },
  });
  expect(wrong.status).toBe(400);
  expect(wrong.json.detail).toContain('jobs.1.command');
  const jobs = Array.from({ length: JOB_LIMITS.batchJobs + 1 }, () => job);
  const many = await gateway.call('POST', '/v1/jobs/batch', { body: { jobs } });
  expect([many.status, many.json.code]).toEqual([400, 'INVALID_ARGUMENT']);
  expect(gateway.fake.jobs.size).toBe(before);
});

test('the same key and body give the same job, and say so', async () => {
  const options = { body: job, headers: { 'idempotency-key': 'key-1' } };
  const first = await gateway.call('POST', '/v1/jobs', options);
  expect(first.status).toBe(201);
  expect(first.headers.get('idempotency-replayed')).toBeNull();
  await gateway.call('POST', `/v1/jobs/${first.json.data.id}/cancel`);

  const again = await gateway.call('POST', '/v1/jobs', options);
  expect(again.status).toBe(200);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  expect(again.json.data).toEqual({ id: first.json.data.id, state: 'CANCELLED' });
});

test('the same key with another body is refused, even one that means the same', async () => {
  const headers = { 'idempotency-key': 'key-2' };
  await gateway.call('POST', '/v1/jobs', { body: '{"command":["true"]}', headers });
  const { status, json } = await gateway.call('POST', '/v1/jobs', {
    body: '{"command": ["true"]}',
    headers,
  });
  expect([status, json.code]).toEqual([409, 'IDEMPOTENCY_MISMATCH']);
});

test('a batch has its key too', async () => {
  const options = { body: { jobs: [job, job] }, headers: { 'idempotency-key': 'key-3' } };
  const first = await gateway.call('POST', '/v1/jobs/batch', options);
  const again = await gateway.call('POST', '/v1/jobs/batch', options);
  expect([first.status, again.status]).toEqual([201, 200]);
  expect(again.json.data.ids).toEqual(first.json.data.ids);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
});

test('the key and the hash of the bytes reach the controller; without a key, neither', async () => {
  const seen: unknown[] = [];
  await using other = await startTestGateway({
    submit: async (_who, request) => {
      seen.push([request.idempotencyKey, request.bodyHash]);
      return { ids: ['j1'], replayed: false };
    },
  });
  const body = '{ "command": ["a"] }';
  const key = 'k'.repeat(255);
  await other.call('POST', '/v1/jobs', { body, headers: { 'idempotency-key': key } });
  await other.call('POST', '/v1/jobs', { body });
  expect(seen).toEqual([
    [key, createHash('sha256').update(body).digest('hex')],
    [null, null],
  ]);
});

test.each([
  ['too long', 'k'.repeat(256)],
  ['empty', ''],
  ['not printable', 'caf\u00e9'],
])('a key that is %s is refused', async (_what, key) => {
  const { status, json } = await gateway.call('POST', '/v1/jobs', {
    body: job,
    headers: { 'idempotency-key': key },
  });
  expect([status, json.code]).toEqual([400, 'INVALID_ARGUMENT']);
  expect(json.detail).toContain('idempotency-key');
});

test('lists are paged by cursor and filtered', async () => {
  await using own = await startTestGateway();
  const jobs = [1, 2, 3, 4, 5].map((n) => ({ ...job, name: n === 3 ? 'three' : 'other' }));
  await own.call('POST', '/v1/jobs/batch', { body: { jobs } });
  const seen: unknown[] = [];
  let cursor: string | null = '0';
  while (cursor !== null) {
    const { json } = await own.call('GET', `/v1/jobs?limit=2&cursor=${cursor}`);
    seen.push(...json.items.map(({ id }) => id));
    cursor = json.meta.nextCursor;
  }
  expect(seen).toEqual(['j5', 'j4', 'j3', 'j2', 'j1']);
  const named = await own.call('GET', '/v1/jobs?name=three');
  expect(named.json.items.map(({ id }) => id)).toEqual(['j3']);
});

test.each(['limit=0', 'limit=501', 'limit=x', 'state=DONE', 'lmit=5', 'limit=1&limit=2'])(
  'the list refuses ?%s and names the parameter',
  async (query) => {
    const { status, json } = await gateway.call('GET', `/v1/jobs?${query}`);
    expect([status, json.code]).toEqual([400, 'INVALID_ARGUMENT']);
    expect(json.detail).toContain(query.split('=')[0]);
  },
);

test('cancel and delete are the same', async () => {
  for (const [method, suffix] of [
    ['POST', '/cancel'],
    ['DELETE', ''],
  ] as const) {
    const { json } = await gateway.call('POST', '/v1/jobs', { body: job });
    const done = await gateway.call(method, `/v1/jobs/${json.data.id}${suffix}`);
    expect([done.status, done.json.data.state]).toEqual([200, 'CANCELLED']);
  }
});

test('a cancel takes an empty body that calls itself JSON', async () => {
  const { json } = await gateway.call('POST', '/v1/jobs', { body: job });
  const headers = { 'content-type': 'application/json' };
  const { status } = await gateway.call('POST', `/v1/jobs/${json.data.id}/cancel`, { headers });
  expect(status).toBe(200);
});

test('wait answers when its time is over, and refuses to wait for ever', async () => {
  const { json } = await gateway.call('POST', '/v1/jobs', { body: job });
  const waited = await gateway.call('GET', `/v1/jobs/${json.data.id}/wait?waitMs=20`);
  expect([waited.status, waited.json.data.state]).toEqual([200, 'PENDING']);
  const long = await gateway.call('GET', `/v1/jobs/${json.data.id}/wait?waitMs=60001`);
  expect([long.status, long.json.code]).toEqual([400, 'INVALID_ARGUMENT']);
});

test.each(['tasks', 'attempts', 'events'])(
  '%s of a job are a list; of no job 404',
  async (what) => {
    const { json } = await gateway.call('POST', '/v1/jobs', { body: job });
    const list = await gateway.call('GET', `/v1/jobs/${json.data.id}/${what}`);
    expect([list.status, list.text]).toEqual([200, '{"data":[],"meta":{"nextCursor":null}}']);
    const none = await gateway.call('GET', `/v1/jobs/nope/${what}`);
    expect([none.status, none.json.code]).toEqual([404, 'NOT_FOUND']);
  },
);
