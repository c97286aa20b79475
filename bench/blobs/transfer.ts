/**
 * One transfer in a process of its own, so that its memory can be told:
 *   node transfer.ts put|get FOLDER FILE      through the contract
 *   node transfer.ts send|fetch URL FILE      through a gateway's HTTP; the token by DROVER_TOKEN
 * The blob's hash comes by BLOB_HASH: naming it is not part of moving it. Prints one line of JSON.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { openFileBlobStore } from '../../src/blobs/files/fileBlobStore.ts';
import { systemClock as clock } from '../../src/lib/clock.ts';
import { type BlobHash, isBlobHash } from '../../src/model/blob.ts';
import { getBlob, putBlob } from '../../src/protocol/blobClient.ts';

const TENANT = 'bench';
const BUFFER_BYTES = 256 * 1024;

const [step = '', place = '', file = ''] = process.argv.slice(2);
const hash = process.env['BLOB_HASH'] ?? '';
if (!isBlobHash(hash)) throw new Error('BLOB_HASH is no hash of a blob');
const begun = performance.now();
const quietRss = process.memoryUsage.rss();
await STEPS()[step]!(hash);
const seconds = (performance.now() - begun) / 1000;
const peakRss = process.resourceUsage().maxRSS * 1024;
process.stdout.write(`${JSON.stringify({ seconds, peakRss, grownBytes: peakRss - quietRss })}\n`);

function STEPS(): Record<string, (hash: BlobHash) => Promise<void>> {
  const server = { url: place, token: process.env['DROVER_TOKEN'] };
  return {
    async put(name) {
      const store = await openFileBlobStore({ folder: place, clock });
      const { size } = await stat(file);
      const content = createReadStream(file, { highWaterMark: BUFFER_BYTES });
      await store.put(TENANT, name, size, content as AsyncIterable<Buffer>);
    },
    async get(name) {
      const store = await openFileBlobStore({ folder: place, clock });
      const target = createWriteStream(file, { highWaterMark: BUFFER_BYTES });
      await pipeline(await store.open(TENANT, name), target);
      await syncFile(file);
    },
    async send(name) {
      const { size } = await stat(file);
      await putBlob(server, file, { hash: name, size });
    },
    async fetch(name) {
      await getBlob(server, name, file);
    },
  };
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  await handle.sync();
  await handle.close();
}
