/** /v1/blobs as a client meets it, with blobs on a real disk. */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DroverError } from '../../lib/errors.ts';
import { type BlobHash, blobHashOf } from '../../model/blob.ts';
import { startBlobGateway, type TestBlobGateway } from './testBlobGateway.ts';

const hello = Buffer.from('hello, blobs');
const helloHash = blobHashOf(hello);
const ABSENT: BlobHash = `sha256:${'0'.repeat(64)}`;
const WORKER = 'worker-token';
const BYTES = { 'content-type': 'application/octet-stream' };
let gateway: TestBlobGateway;

beforeAll(async () => {
  gateway = await startBlobGateway({
    maxBlobBytes: 1_000_000,
    tenantQuotaBytes: 1_500_000,
    mayUse: async (token, uid) => (token === WORKER && uid === 'j1.0.1.ab' ? 'lab' : undefined),
  });
});
afterAll(() => gateway.close());

const send = (to: TestBlobGateway, hash: string, size: number) =>
  request(`${to.url}${path(hash)}`, {
    method: 'PUT',
    headers: { 'content-length': size, ...BYTES, authorization: `Bearer ${to.fake.adminToken}` },
  });
const path = (hash: string): string => `/v1/blobs/${hash}`;
const put = (bytes: Buffer, hash = blobHashOf(bytes), headers: Record<string, string> = BYTES) =>
  gateway.call('PUT', path(hash), { body: bytes, headers });
const leftovers = (): string[] => readdirSync(join(gateway.folder, '.tmp'));

test('put, look, get, ask what is missing, remove', async () => {
  const first = await put(hello);
  expect(first.status).toBe(201);
  expect(first.json.data).toEqual({ hash: helloHash, size: hello.length, created: true });
  const again = await put(hello);
  expect([again.status, again.json.data['created']]).toEqual([200, false]);

  const head = await gateway.call('HEAD', path(helloHash));
  expect(head.status).toBe(200);
  expect(head.headers.get('content-length')).toBe(String(hello.length));
  const got = await gateway.call('GET', path(helloHash));
  expect([got.status, got.text]).toEqual([200, hello.toString()]);
  expect(got.headers.get('etag')).toBe(`"${helloHash}"`);
  expect(got.headers.get('content-type')).toBe('application/octet-stream');
  expect(got.headers.get('x-content-type-options')).toBe('nosniff');
  const same = await gateway.call('GET', path(helloHash), {
    headers: { 'if-none-match': `"${helloHash}"` },
  });
  expect([same.status, same.text]).toEqual([304, '']);
  // Files have no URLs of their own: the bytes come all the same.
  const redirected = await gateway.call('GET', `${path(helloHash)}?redirect=1`);
  expect([redirected.status, redirected.text]).toEqual([200, hello.toString()]);

  const asked = { hashes: [ABSENT, helloHash] };
  const missing = await gateway.call('POST', '/v1/blobs/missing', { body: asked });
  expect(missing.json.data).toEqual({ missing: [ABSENT] });
  expect((await gateway.call('DELETE', path(helloHash))).status).toBe(200);
  for (const method of ['GET', 'HEAD', 'DELETE']) {
    expect((await gateway.call(method, path(helloHash))).status, method).toBe(404);
  }
});

test('an empty blob, with and without a content type', async () => {
  const nothing = Buffer.alloc(0);
  expect((await put(nothing, blobHashOf(nothing), {})).status).toBe(201);
  expect((await put(nothing)).status).toBe(200);
  const got = await gateway.call('GET', path(blobHashOf(nothing)));
  expect([got.status, got.text, got.headers.get('content-length')]).toEqual([200, '', '0']);
});

test.each([
  ['bytes=0-4', 206, 'hello', 'bytes 0-4/12'],
  ['bytes=7-', 206, 'blobs', 'bytes 7-11/12'],
  ['bytes=-5', 206, 'blobs', 'bytes 7-11/12'],
  ['bytes=7-999', 206, 'blobs', 'bytes 7-11/12'],
  ['bytes=-999', 206, 'hello, blobs', 'bytes 0-11/12'],
  ['bytes=12-', 416, undefined, 'bytes */12'],
  ['bytes=-0', 416, undefined, 'bytes */12'],
  ['bytes=5-2', 200, 'hello, blobs', null],
  ['bytes=0-1,3-4', 200, 'hello, blobs', null],
  ['lines=1-2', 200, 'hello, blobs', null],
])('Range: %s', async (range, status, text, contentRange) => {
  await put(hello);
  const got = await gateway.call('GET', path(helloHash), { headers: { range } });
  expect(got.status).toBe(status);
  expect(got.headers.get('content-range')).toBe(contentRange);
  if (text === undefined) expect(got.json.code).toBe('RANGE_NOT_SATISFIABLE');
  else expect(got.text).toBe(text);
});

test('a Range of another version is answered with all of it', async () => {
  await put(hello);
  const range = 'bytes=0-4';
  for (const [etag, status] of [
    [`"${helloHash}"`, 206],
    ['"another"', 200],
  ] as const) {
    const headers = { range, 'if-range': etag };
    expect((await gateway.call('GET', path(helloHash), { headers })).status).toBe(status);
  }
});

test('what is wrong is named, and nothing is kept of it', async () => {
  const other = await put(Buffer.from('other bytes'), ABSENT);
  expect([other.status, other.json.code]).toEqual([400, 'INVALID_ARGUMENT']);
  expect(other.json.detail).toContain(`not ${ABSENT}`);
  expect(other.json.hint).toContain('Nothing was stored');

  const large = await put(Buffer.alloc(1_000_001));
  expect([large.status, large.json.code]).toEqual([413, 'BODY_TOO_LARGE']);
  expect(large.json.detail).toContain('1000000');

  for (const name of ['sha256:ABC', 'md5:0', helloHash.toUpperCase(), `${helloHash}0`]) {
    for (const method of ['PUT', 'GET', 'DELETE']) {
      const { status, json } = await gateway.call(method, path(name));
      expect([status, json.code], `${method} ${name}`).toEqual([400, 'INVALID_ARGUMENT']);
    }
  }
  const asked = await gateway.call('POST', '/v1/blobs/missing', { body: { hashes: ['x'] } });
  expect([asked.status, asked.json.code]).toEqual([400, 'INVALID_ARGUMENT']);
  expect(asked.json.detail).toContain('64 hexadecimal digits');
  const many = { hashes: Array.from({ length: 5001 }, () => ABSENT) };
  expect((await gateway.call('POST', '/v1/blobs/missing', { body: many })).status).toBe(400);

  expect((await gateway.call('GET', path(ABSENT))).status).toBe(404);
  expect(leftovers()).toEqual([]);
});

test('over the quota', async () => {
  expect((await put(Buffer.alloc(900_000, 'a'))).status).toBe(201);
  expect((await put(Buffer.alloc(900_000, 'a'))).status, 'is there already').toBe(200);
  const second = await put(Buffer.alloc(900_000, 'b'));
  expect([second.status, second.json.code]).toEqual([422, 'OVER_QUOTA']);
  expect(second.json.hint).toContain('1500000');
  // What is removed counts no more, at once.
  await gateway.call('DELETE', path(blobHashOf(Buffer.alloc(900_000, 'a'))));
  expect((await put(Buffer.alloc(900_000, 'b'))).status).toBe(201);
  await gateway.call('DELETE', path(blobHashOf(Buffer.alloc(900_000, 'b'))));
});

test('a body without a length is refused; one that breaks off leaves nothing', async () => {
  const authorization = `Bearer ${gateway.fake.adminToken}`;
  const chunked = request(`${gateway.url}${path(helloHash)}`, {
    method: 'PUT',
    headers: { 'transfer-encoding': 'chunked', ...BYTES, authorization },
  });
  chunked.end(hello);
  const [answer] = (await once(chunked, 'response')) as [{ statusCode: number }];
  expect(answer.statusCode).toBe(400);

  const lost = Buffer.alloc(400_000, 'x');
  const torn = send(gateway, blobHashOf(lost), lost.length);
  torn.on('error', () => {});
  torn.write(lost.subarray(0, 300_000));
  await delay(50);
  expect(leftovers()).toHaveLength(1);
  torn.destroy();
  while (leftovers().length > 0) await delay(5);
  expect((await gateway.call('GET', path(blobHashOf(lost)))).status).toBe(404);
});

test('an agent acts for the tenant of an attempt it holds, and for no other', async () => {
  const bytes = Buffer.from('a checkpoint');
  const hash = blobHashOf(bytes);
  const call = (method: string, token: string, attempt: string, body?: Buffer) =>
    gateway.call(method, path(hash), {
      token,
      headers: { ...BYTES, 'drover-attempt': attempt },
      ...(body ? { body } : {}),
    });
  expect((await call('PUT', WORKER, 'j1.0.1.ab', bytes)).status).toBe(201);
  expect((await call('GET', WORKER, 'j1.0.1.ab')).text).toBe('a checkpoint');
  expect(await gateway.store.stat('lab', hash)).toBeDefined();
  expect((await gateway.call('GET', path(hash))).status, 'another tenant').toBe(404);
  for (const [token, attempt] of [
    [WORKER, 'j1.0.2.cd'],
    ['guess', 'j1.0.1.ab'],
    [gateway.fake.adminToken, 'j1.0.1.ab'],
  ] as const) {
    const { status, json } = await call('GET', token, attempt);
    expect([status, json.code], `${token} ${attempt}`).toEqual([401, 'UNAUTHENTICATED']);
  }
  // Removing is for users; a worker token is none.
  expect((await call('DELETE', WORKER, 'j1.0.1.ab')).status).toBe(401);
});

test('scopes: reading is not writing', async () => {
  await put(hello);
  const reader = gateway.fake.tokenWith('jobs:read');
  expect((await gateway.call('GET', path(helloHash), { token: reader })).status).toBe(200);
  for (const method of ['PUT', 'DELETE']) {
    const { status, json } = await gateway.call(method, path(helloHash), { token: reader });
    expect([status, json.code], method).toEqual([403, 'PERMISSION_DENIED']);
  }
  expect((await gateway.call('GET', path(helloHash), { token: null })).status).toBe(401);
});

test('the description has every route', async () => {
  const { text } = await gateway.call('GET', '/openapi.json');
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, unknown>> };
  expect(Object.keys(paths['/v1/blobs/missing'] ?? {})).toEqual(['post']);
  expect(Object.keys(paths['/v1/blobs/{hash}'] ?? {})).toEqual(
    expect.arrayContaining(['get', 'head', 'put', 'delete']),
  );
});

test('a store that cannot be asked is no 404; a sender that stands still is let go', async () => {
  const away = new DroverError('UNAVAILABLE', 'The S3 of the blob store does not answer');
  let isAway = true;
  await using broken = await startBlobGateway({
    verbs: {
      stat: () => Promise.reject(away),
      missing: async (_, hashes) => {
        if (isAway) throw away;
        return [...hashes];
      },
    },
    transferSilenceMs: 100,
  });
  const { status, json } = await broken.call('GET', path(helloHash));
  expect([status, json.code]).toEqual([503, 'UNAVAILABLE']);
  const asked = await broken.call('POST', '/v1/blobs/missing', { body: { hashes: [helloHash] } });
  expect([asked.status, asked.json.code]).toEqual([503, 'UNAVAILABLE']);

  isAway = false;
  const silent = send(broken, helloHash, 1000);
  silent.write('a bit');
  const [error] = (await once(silent, 'error')) as [NodeJS.ErrnoException];
  expect(error.code).toBe('ECONNRESET');
}, 20_000);

test('an upload may take longer than other requests; torn, it leaves nothing', async () => {
  const requestReceiveMs = 150;
  await using slow = await startBlobGateway({ requestReceiveMs });
  const bytes = Buffer.alloc(64_000, 'slow');
  const hash = blobHashOf(bytes);
  const torn = send(slow, hash, bytes.length);
  torn.on('error', () => {});
  const whole = send(slow, hash, bytes.length);
  const answered = once(whole, 'response') as Promise<[IncomingMessage]>;
  const begunAtMs = Date.now();
  for (let at = 0; at < bytes.length; at += 8_000) {
    if (at < 56_000) torn.write(bytes.subarray(at, at + 8_000));
    whole.write(bytes.subarray(at, at + 8_000));
    await delay(requestReceiveMs);
  }
  expect(Date.now() - begunAtMs).toBeGreaterThan(4 * requestReceiveMs);
  whole.end();
  const [{ statusCode }] = await answered;
  expect(statusCode).toBe(201);
  expect(readdirSync(join(slow.folder, '.tmp')), 'of the one that has not ended').toHaveLength(1);
  torn.destroy();
  while (readdirSync(join(slow.folder, '.tmp')).length > 0) await delay(5);

  // Whatever is no blob still has its time.
  const late = request(`${slow.url}/v1/blobs/missing`, {
    method: 'POST',
    headers: {
      'content-length': 100,
      'content-type': 'application/json',
      authorization: `Bearer ${slow.fake.adminToken}`,
    },
  });
  late.write('{');
  const [answer] = (await once(late, 'response')) as [IncomingMessage];
  expect(answer.statusCode).toBe(408);
  late.destroy();
}, 20_000);
