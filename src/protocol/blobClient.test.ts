/** Files to blobs and back, over connections that break, against a real gateway. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startProxy } from '../../test/support/proxy.ts';
import { startBlobGateway, type TestBlobGateway } from '../gateway/rest/testBlobGateway.ts';
import { type BlobHash, blobHashOf } from '../model/blob.ts';
import { type BlobClientOptions, getBlob, hashFile, missingBlobs, putBlob } from './blobClient.ts';

const ABSENT: BlobHash = `sha256:${'0'.repeat(64)}`;
const MIB = 1024 * 1024;
let gateway: TestBlobGateway;
let folder: string;
let options: BlobClientOptions;
let at: (name: string) => string;

beforeAll(async () => {
  const mayUse = async (token: string) => (token === 'worker' ? 'lab' : undefined);
  gateway = await startBlobGateway({ mayUse });
  folder = mkdtempSync(join(tmpdir(), 'drover-client-'));
  options = { url: gateway.url, token: gateway.fake.adminToken };
  at = (name) => join(folder, name);
});
afterAll(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true });
});

test('a file goes there and back, with progress, and only where it is missing', async () => {
  const bytes = randomBytes(3 * MIB + 7);
  writeFileSync(at('source'), bytes);
  const { hash, size } = await hashFile(at('source'));
  expect([hash, size]).toEqual([blobHashOf(bytes), bytes.length]);
  expect(await missingBlobs(options, [hash, ABSENT])).toEqual([hash, ABSENT]);
  const told: number[] = [];
  const sent = await putBlob(options, at('source'), { onProgress: (done) => told.push(done) });
  expect(sent).toEqual({ hash, size, created: true });
  expect(told.at(-1)).toBe(size);
  expect(await missingBlobs(options, [hash, ABSENT])).toEqual([ABSENT]);
  expect((await putBlob(options, at('source'), { hash, size })).created).toBe(false);
  const totals = new Set<number>();
  await getBlob(options, hash, at('copy'), { onProgress: (_, total) => totals.add(total) });
  expect(readFileSync(at('copy')).equals(bytes)).toBe(true);
  expect([...totals]).toEqual([size]);
  expect(existsSync(at('copy.part'))).toBe(false);
});

test('more hashes than one call takes', async () => {
  const many = Array.from({ length: 5001 }, (_, n) => blobHashOf(Buffer.from(String(n))));
  expect(await missingBlobs(options, many)).toEqual(many);
});

test('connections that break: the fetch goes on where it was, the send begins again', async () => {
  const bytes = randomBytes(8 * MIB);
  const hash = blobHashOf(bytes);
  writeFileSync(at('large'), bytes);
  const breaking = async (use: (through: BlobClientOptions) => Promise<unknown>) => {
    const proxy = await startProxy(gateway.url);
    let connections = 0;
    proxy.cutAfter = () => (++connections > 2 ? Number.POSITIVE_INFINITY : 3 * MIB);
    await use({ ...options, url: proxy.url });
    expect(proxy.cuts()).toBe(2);
    await proxy.close();
  };
  await breaking((through) => putBlob(through, at('large')));
  const done: number[] = [];
  const onProgress = (bytes: number): void => void done.push(bytes);
  await breaking((through) => getBlob(through, hash, at('large copy'), { onProgress }));
  expect(done, 'never back').toEqual(done.toSorted((a, b) => a - b));
  expect(readFileSync(at('large copy')).equals(bytes)).toBe(true);
});

test('what an earlier process left is used; what does not fit is thrown away', async () => {
  const bytes = randomBytes(2 * MIB);
  const hash = blobHashOf(bytes);
  await gateway.store.put('main', hash, bytes.length, [bytes]);
  writeFileSync(at('resumed.part'), bytes.subarray(0, MIB));
  let first = 0;
  await getBlob(options, hash, at('resumed'), { onProgress: (done) => (first ||= done) });
  expect(first).toBeGreaterThan(MIB);
  expect(readFileSync(at('resumed')).equals(bytes)).toBe(true);

  writeFileSync(at('whole.part'), bytes);
  await getBlob(options, hash, at('whole'));
  expect(readFileSync(at('whole')).equals(bytes)).toBe(true);

  writeFileSync(at('torn.part'), randomBytes(MIB));
  const failed = getBlob(options, hash, at('torn'));
  await expect(failed).rejects.toThrow(`What came for ${hash} has the hash`);
  expect(existsSync(at('torn')) || existsSync(at('torn.part'))).toBe(false);
  await getBlob(options, hash, at('torn'));
  expect(statSync(at('torn')).size).toBe(bytes.length);
});

test('an agent sends and fetches for its attempt', async () => {
  writeFileSync(at('checkpoint'), 'weights');
  const agent = { url: gateway.url, token: 'worker', attempt: 'j1.0.1.ab' };
  const { hash } = await putBlob(agent, at('checkpoint'));
  expect(await missingBlobs(agent, [hash])).toEqual([]);
  expect(await gateway.store.stat('lab', hash)).toBeDefined();
  await expect(getBlob(options, hash, at('not mine'))).rejects.toMatchObject({ status: 404 });
});

test('failures are told as they are', async () => {
  await expect(getBlob(options, ABSENT, at('none'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(existsSync(at('none'))).toBe(false);
  await expect(putBlob(options, at('no such file'))).rejects.toMatchObject({ code: 'ENOENT' });
  writeFileSync(at('changed'), 'after');
  const stale = putBlob(options, at('changed'), { hash: ABSENT, size: 5 });
  await expect(stale).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', status: 400 });
  const nobody = { ...options, url: 'http://127.0.0.1:1' };
  await expect(putBlob(nobody, at('changed'))).rejects.toMatchObject({ name: 'ConnectionError' });
  const stop = AbortSignal.abort(new Error('enough'));
  await expect(putBlob(options, at('changed'), { signal: stop })).rejects.toThrow('enough');
});
