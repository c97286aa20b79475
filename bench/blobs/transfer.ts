/**
 * One transfer in a process of its own, so that its memory can be told:
 *   node transfer.ts put|get FOLDER FILE      through the contract
 *   node transfer.ts send|fetch URL FILE      through a gateway's HTTP; the token by DROVER_TOKEN
 * The blob's hash comes by BLOB_HASH: naming it is not part of moving it. Prints one line of JSON.
 */
import { stat } from 'node:fs/promises';
import { openFileBlobStore } from '../../src/blobs/files/fileBlobStore.ts';
import { systemClock as clock } from '../../src/lib/clock.ts';
import { filePieces } from '../../src/lib/filePieces.ts';
import { HashingWriter } from '../../src/lib/hashingWriter.ts';
import { HashThread } from '../../src/lib/hashThread.ts';
import { type BlobHash, isBlobHash } from '../../src/model/blob.ts';
import { getBlob, putBlob } from '../../src/protocol/blobClient.ts';

const TENANT = 'bench';

const [step = '', place = '', file = ''] = process.argv.slice(2);
const hash = process.env['BLOB_HASH'] ?? '';
if (!isBlobHash(hash)) throw new Error('BLOB_HASH is no hash of a blob');
const begun = performance.now();
const quietRss = process.memoryUsage.rss();
const quietCpu = process.cpuUsage();
const quietCpuSeconds = (quietCpu.user + quietCpu.system) / 1e6;
await STEPS()[step]!(hash);
const seconds = (performance.now() - begun) / 1000;
const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6 - quietCpuSeconds;
const grownBytes = maxRSS * 1024 - quietRss;
process.stdout.write(`${JSON.stringify({ seconds, cpuSeconds, grownBytes })}\n`);

function STEPS(): Record<string, (hash: BlobHash) => Promise<void>> {
  const server = { url: place, token: process.env['DROVER_TOKEN'] };
  return {
    async put(name) {
      const store = await openFileBlobStore({ folder: place, clock });
      const { size } = await stat(file);
      await store.put(TENANT, name, size, filePieces(file));
      await store.close();
    },
    async get(name) {
      const store = await openFileBlobStore({ folder: place, clock });
      const { size } = (await store.stat(TENANT, name))!;
      const thread = new HashThread();
      const writer = await HashingWriter.open(file, { hasher: thread.hasher(size), size });
      const pieces = await store.pieces(TENANT, name);
      for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
        await writer.add(next.value);
      }
      if (`sha256:${await writer.finish()}` !== name) throw new Error('other bytes came out');
      await writer.close();
      await thread.end();
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
