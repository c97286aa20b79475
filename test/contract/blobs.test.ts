/** One contract: on files, on an S3 that checks signatures and on one that keeps checksums. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import type { BlobStore } from '../../src/blobs/contract.ts';
import { openFileBlobStore } from '../../src/blobs/files/fileBlobStore.ts';
import { S3BlobStore } from '../../src/blobs/s3/s3BlobStore.ts';
import { systemClock as clock } from '../../src/lib/clock.ts';
import { S3_BUCKET, S3_KEY, S3_SECRET, type S3Server } from '../support/s3Servers.ts';
import { startMoto, startRclone } from '../support/s3Servers.ts';
import { blobContract, REFRESH_MS as refreshMs } from './blobs.contract.ts';

const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

describe('files', () => {
  blobContract(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'drover-blobs-'));
    ends.push(() => rmSync(folder, { recursive: true }));
    return openFileBlobStore({ folder, clock, refreshMs });
  });
});

describe('S3 of rclone', () =>
  blobContract(async () => storeOn(await startRclone(), 'lab/drover')));

describe('S3 of moto', () => blobContract(async () => storeOn(await startMoto(), '')));

function storeOn(server: S3Server, prefix: string): BlobStore {
  ends.push(() => server.stop());
  return new S3BlobStore({
    endpoint: server.endpoint,
    region: 'eu-central-1',
    bucket: S3_BUCKET,
    prefix,
    pathStyle: true,
    accessKeyId: S3_KEY,
    secretAccessKey: S3_SECRET,
    clock,
    refreshMs,
  });
}
