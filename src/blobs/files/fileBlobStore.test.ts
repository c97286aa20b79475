/** Blobs as files where the disk is full, read-only or holds what a crash left. */
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mountSmallDisk, type SmallDisk } from '../../../test/support/smallDisk.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import { blobHashOf } from '../../model/blob.ts';
import { openFileBlobStore } from './fileBlobStore.ts';
import { leftoverPrefix } from './leftovers.ts';

const MIB = 1024 * 1024;

async function onSmallDisk(use: (disk: SmallDisk) => Promise<void>): Promise<void> {
  const disk = mountSmallDisk(8);
  try {
    await use(disk);
  } finally {
    disk.remove();
  }
}

test('a disk that is full says so, keeps nothing half and goes on when there is room', async () => {
  await onSmallDisk(async (disk) => {
    const { folder } = disk;
    const store = await openFileBlobStore({ folder: join(folder, 'blobs'), clock });
    const kept = Buffer.from('kept');
    await store.put('lab', blobHashOf(kept), kept.length, [kept]);
    const large = randomBytes(9 * MIB);
    const full = { code: 'NO_SPACE', hint: expect.stringContaining('Free some space') };
    const put = (bytes: Buffer) => store.put('lab', blobHashOf(bytes), bytes.length, [bytes]);
    await expect(put(large)).rejects.toMatchObject(full);
    expect(readdirSync(join(folder, 'blobs/.tmp'))).toEqual([]);
    expect(await store.missing('lab', [blobHashOf(large)])).toHaveLength(1);

    const small = randomBytes(MIB);
    disk.fill();
    await expect(put(small)).rejects.toMatchObject(full);
    expect((await store.stat('lab', blobHashOf(kept)))?.size).toBe(4);
    expect(await store.remove('lab', blobHashOf(kept))).toBe(true);
    disk.empty();
    expect(await put(small)).toEqual({ created: true });
  });
});

test('a folder that cannot be written or read is an error, never "none"', async () => {
  await onSmallDisk(async ({ folder }) => {
    const store = await openFileBlobStore({ folder, clock });
    const bytes = Buffer.from('kept');
    const hash = blobHashOf(bytes);
    await store.put('lab', hash, bytes.length, [bytes]);
    execFileSync('mount', ['-o', 'remount,ro', folder]);
    const refused = { code: 'UNAVAILABLE', message: expect.stringContaining('EROFS') };
    const other = Buffer.from('other');
    await expect(store.put('lab', blobHashOf(other), 5, [other])).rejects.toMatchObject(refused);
    await expect(store.remove('lab', hash)).rejects.toMatchObject(refused);
    expect(await store.missing('lab', [hash])).toEqual([]);
    await expect(openFileBlobStore({ folder, clock })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: `The blob store cannot use the folder ${folder} (EROFS)`,
    });
  });
  const folder = mkdtempSync(join(tmpdir(), 'drover-blobs-'));
  const store = await openFileBlobStore({ folder, clock });
  // A tenant's folder that is no folder: the disk is broken, which says nothing of the blob.
  writeFileSync(join(folder, 'lab'), '');
  const hash = blobHashOf(Buffer.from('x'));
  const broken = { code: 'UNAVAILABLE', message: expect.stringContaining('ENOTDIR') };
  await expect(store.stat('lab', hash)).rejects.toMatchObject(broken);
  await expect(store.missing('lab', [hash])).rejects.toMatchObject(broken);
  await expect(store.open('lab', hash)).rejects.toMatchObject(broken);
  await expect(store.list('lab')[Symbol.asyncIterator]().next()).rejects.toMatchObject(broken);
  rmSync(folder, { recursive: true });
});

test('a start removes what a crash left, and nothing that is still being written', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'drover-blobs-'));
  const temporary = join(folder, '.tmp');
  mkdirSync(temporary);
  const [tag] = leftoverPrefix().split('-');
  const gone = spawnSync('true').pid;
  const names = {
    mine: `${leftoverPrefix()}-a`,
    ofDead: `${tag}-${gone}-123-b`,
    ofReusedPid: `${tag}-${process.pid}-1-c`,
    elsewhereYoung: 'ffffffffffffffff-1-1-d',
    elsewhereOld: 'ffffffffffffffff-1-1-e',
  };
  for (const name of Object.values(names)) writeFileSync(join(temporary, name), 'half');
  utimesSync(join(temporary, names.elsewhereOld), 1, 1);
  await openFileBlobStore({ folder, clock });
  expect(readdirSync(temporary).toSorted()).toEqual([names.mine, names.elsewhereYoung].toSorted());
  rmSync(folder, { recursive: true });
});
