/** What every blob store must do. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import type { BlobEntry, BlobStore } from '../../src/blobs/contract.ts';
import { type BlobHash, blobHashOf } from '../../src/model/blob.ts';

const ABSENT: BlobHash = `sha256:${'0'.repeat(64)}`;
/** More than one part of an S3 upload, and not a whole number of them. */
const LARGE_BYTES = 17 * 1024 * 1024 + 13;
/** So soon a blob that is asked for is marked as wanted again. */
export const REFRESH_MS = 1000;

export function blobContract(open: () => Promise<BlobStore>): void {
  const large = randomBytes(LARGE_BYTES);
  const largeHash = blobHashOf(large);
  let store: BlobStore;
  let tenants = 0;
  beforeAll(async () => {
    store = await open();
    return () => store.close();
  });
  const fresh = (): string => `tenant-${++tenants}`;
  const put = (tenant: string, bytes: Buffer) =>
    store.put(tenant, blobHashOf(bytes), bytes.length, pieces(bytes));

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['a few bytes', Buffer.from('hello\0\n')],
    ['many megabytes', large],
  ])('%s goes in and comes out the same', async (_, bytes) => {
    const tenant = fresh();
    const hash = blobHashOf(bytes);
    expect(await store.stat(tenant, hash)).toBeUndefined();
    const begunAtMs = Date.now();
    expect(await put(tenant, bytes)).toEqual({ created: true });
    expect(await put(tenant, bytes)).toEqual({ created: false });
    const known = await store.stat(tenant, hash);
    expect(known?.size).toBe(bytes.length);
    // Times may be told in whole seconds.
    expect(known?.modifiedAtMs).toBeGreaterThan(begunAtMs - 2000);
    expect((await read(await store.open(tenant, hash))).equals(bytes)).toBe(true);
    expect(await all(store, tenant)).toMatchObject([{ hash, size: bytes.length }]);
    expect(await store.missing(tenant, [ABSENT, hash, ABSENT])).toEqual([ABSENT]);
    expect(await store.remove(tenant, hash)).toBe(true);
    expect(await store.remove(tenant, hash)).toBe(false);
    expect(await store.stat(tenant, hash)).toBeUndefined();
    await expect(store.open(tenant, hash)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('a range is just these bytes, and a stream that is left does no harm', async () => {
    const tenant = fresh();
    await put(tenant, large);
    for (const [start, end] of [
      [0, 0],
      [LARGE_BYTES - 1, LARGE_BYTES - 1],
      [5, 9_000_000],
    ] as const) {
      const found = await read(await store.open(tenant, largeHash, { start, end }));
      expect(found.equals(large.subarray(start, end + 1)), `${start}-${end}`).toBe(true);
    }
    const unread = await store.open(tenant, largeHash);
    unread.destroy();
    const left = await store.open(tenant, largeHash);
    for await (const _ of left) break;
    expect((await read(await store.open(tenant, largeHash))).length).toBe(LARGE_BYTES);
  });

  test('pieces for whoever uses each before the next one come to the same', async () => {
    const tenant = fresh();
    await put(tenant, large);
    for (const range of [undefined, { start: 5, end: 9_000_000 }, { start: 7, end: 7 }]) {
      const pieces = await store.pieces(tenant, largeHash, range);
      const copies: Buffer[] = [];
      for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
        copies.push(Buffer.from(next.value));
      }
      const { start, end } = range ?? { start: 0, end: LARGE_BYTES };
      expect(Buffer.concat(copies).equals(large.subarray(start, end + 1))).toBe(true);
    }
    const left = await store.pieces(tenant, largeHash);
    await left.next();
    await left.return?.();
    await expect(store.pieces(tenant, ABSENT)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('tenants are apart, whatever they are called', async () => {
    const names = ['ada', 'Ada', '..', '.', 'tmp', 'a/b', 'a%2Fb', 'ä ö', '', 'x'.repeat(100)];
    const bytes = Buffer.from('shared');
    const hash = blobHashOf(bytes);
    for (const [index, name] of names.entries()) {
      expect(await store.missing(name, [hash]), name).toEqual([hash]);
      expect(await put(name, bytes), name).toEqual({ created: true });
      expect(await all(store, name), name).toHaveLength(1);
      for (const later of names.slice(index + 1)) expect(await all(store, later)).toEqual([]);
    }
    for (const name of names) {
      expect(await store.remove(name, hash), name).toBe(true);
      expect(await all(store, name), name).toEqual([]);
    }
  });

  test.each([
    ['other bytes', large.length, Buffer.concat([large.subarray(1), Buffer.from('x')])],
    ['less', large.length, large.subarray(1)],
    ['more', large.length, Buffer.concat([large, Buffer.from('x')])],
    ['other bytes, few', 3, Buffer.from('abc')],
  ])('%s than was said is refused and leaves nothing', async (_, size, bytes) => {
    const tenant = fresh();
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('The content') };
    await expect(store.put(tenant, largeHash, size, pieces(bytes))).rejects.toMatchObject(refused);
    expect(await store.stat(tenant, largeHash)).toBeUndefined();
    expect(await all(store, tenant)).toEqual([]);
  });

  test('an upload that breaks off leaves nothing, and works when it is tried again', async () => {
    const tenant = fresh();
    async function* broken(): AsyncGenerator<Buffer> {
      yield large.subarray(0, 12_000_000);
      throw new Error('the sender went away');
    }
    const putting = store.put(tenant, largeHash, large.length, broken());
    await expect(putting).rejects.toThrow('the sender went away');
    expect(await all(store, tenant)).toEqual([]);
    expect(await put(tenant, large)).toEqual({ created: true });
  });

  test('the same blob from several senders at once is one blob', async () => {
    const tenant = fresh();
    const bytes = randomBytes(300_000);
    const results = await Promise.all(Array.from({ length: 8 }, () => put(tenant, bytes)));
    expect(results.some(({ created }) => created)).toBe(true);
    expect(await all(store, tenant)).toHaveLength(1);
    expect((await read(await store.open(tenant, blobHashOf(bytes)))).equals(bytes)).toBe(true);
  });

  test('a blob that was found counts as young again, one that was not does not', async () => {
    const tenant = fresh();
    const [wanted, other] = [Buffer.from('wanted'), Buffer.from('other')];
    await put(tenant, wanted);
    await put(tenant, other);
    const before = await store.stat(tenant, blobHashOf(wanted));
    // Times may be told in whole seconds.
    await delay(REFRESH_MS + 1100);
    expect(await store.missing(tenant, [blobHashOf(wanted)])).toEqual([]);
    const after = await store.stat(tenant, blobHashOf(wanted));
    expect(after?.modifiedAtMs).toBeGreaterThan(before!.modifiedAtMs);
    const listed = await all(store, tenant);
    const time = (bytes: Buffer) =>
      listed.find(({ hash }) => hash === blobHashOf(bytes))!.modifiedAtMs;
    // A list may tell parts of a second where a look does not.
    expect(Math.abs(time(wanted) - after!.modifiedAtMs)).toBeLessThan(1000);
    expect(time(other)).toBeLessThan(time(wanted));
    expect(await store.remove(tenant, blobHashOf(wanted))).toBe(true);
    expect(await all(store, tenant)).toMatchObject([{ hash: blobHashOf(other) }]);
  });

  test('many are listed, each once', async () => {
    const tenant = fresh();
    const blobs = Array.from({ length: 40 }, (_, n) => Buffer.from(`blob ${n}`));
    await Promise.all(blobs.map((bytes) => put(tenant, bytes)));
    const listed = (await all(store, tenant)).map(({ hash }) => hash);
    expect(listed.toSorted()).toEqual(blobs.map(blobHashOf).toSorted());
    expect(await store.missing(tenant, [...blobs.map(blobHashOf), ABSENT])).toEqual([ABSENT]);
  });
}

/** As a socket would give them. */
async function* pieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

async function read(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function all(store: BlobStore, tenant: string): Promise<BlobEntry[]> {
  const entries: BlobEntry[] = [];
  for await (const entry of store.list(tenant)) entries.push(entry);
  return entries;
}
