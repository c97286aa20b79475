/** Sends a folder as blobs: what the server does not have, then the manifest that lists them. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { blobHashOf, type BlobHash } from '../../model/blob.ts';
import { manifestBytes, manifestText, type Manifest } from '../../model/manifest.ts';
import { hashFile, missingBlobs, putBlob, putBytes } from '../../protocol/blobClient.ts';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import { UsageError } from '../args.ts';
import type { HashCache } from './hashCache.ts';
import type { Found, FoundFile } from './walk.ts';

/** Files read and sent at once: enough to hide the way there and back, few enough for any disk. */
const AT_ONCE = 16;
/** Such files are read whole: streams cost more than they hold. */
const SMALL_BYTES = 256 * 1024;

export interface SendOptions {
  blobs: BlobClientOptions;
  root: string;
  cache: HashCache;
  /** For a person: what goes on. */
  say: (progress: string) => Promise<void>;
}

export interface Sent {
  manifest: BlobHash;
  files: number;
  bytes: number;
  /** Of these, how many the server did not have; the manifest itself is not counted. */
  sentFiles: number;
  sentBytes: number;
}

export async function sendFolder(found: Found, options: SendOptions): Promise<Sent> {
  const { blobs, cache, say } = options;
  const hashes = await hashAll(found.files, options);
  cache.save();
  const manifest: Manifest = {
    version: 1,
    files: found.files.map(({ path: at, size, executable }, index) => ({
      path: at,
      hash: hashes[index]!,
      size,
      executable,
    })),
    links: found.links,
    folders: found.folders,
  };
  const byHash = new Map(found.files.map((file, index) => [hashes[index]!, file]));
  const missing = await missingBlobs(blobs, [...byHash.keys()]);
  let [sentFiles, sentBytes] = [0, 0];
  await each(missing, async (hash) => {
    const file = byHash.get(hash)!;
    await sendFile(options, file, hash);
    sentFiles++;
    sentBytes += file.size;
    if (sentFiles % 100 === 0) await say(`sending files: ${sentFiles} of ${missing.length}`);
  });
  const text = Buffer.from(manifestText(manifest));
  const name = blobHashOf(text);
  if ((await missingBlobs(blobs, [name])).length > 0) await putBytes(blobs, text);
  const bytes = manifestBytes(manifest);
  return { manifest: name, files: found.files.length, bytes, sentFiles, sentBytes };
}

async function hashAll(files: FoundFile[], options: SendOptions): Promise<BlobHash[]> {
  const { cache, root, say } = options;
  const hashes: BlobHash[] = Array.from({ length: files.length });
  let done = 0;
  const unknown = [...files.keys()].filter((at) => {
    const known = cache.get(files[at]!);
    if (known) hashes[at] = known;
    return !known;
  });
  await each(unknown, async (at) => {
    const file = files[at]!;
    const { hash, size } = await hashOf(path.join(root, file.path), file.size);
    if (size !== file.size) throw changed(root, file);
    hashes[at] = hash;
    cache.set(file, hash);
    if (++done % 1000 === 0) await say(`reading files: ${done} of ${unknown.length}`);
  });
  return hashes;
}

async function hashOf(at: string, size: number): Promise<{ hash: BlobHash; size: number }> {
  if (size > SMALL_BYTES) return hashFile(at);
  const bytes = readFileSync(at);
  return { hash: blobHashOf(bytes), size: bytes.length };
}

async function sendFile({ blobs, root }: SendOptions, file: FoundFile, hash: BlobHash) {
  const at = path.join(root, file.path);
  if (file.size <= SMALL_BYTES) {
    const bytes = readFileSync(at);
    if (blobHashOf(bytes) !== hash) throw changed(root, file);
    await putBytes(blobs, bytes);
    return;
  }
  try {
    await putBlob(blobs, at, { hash, size: file.size });
  } catch (error) {
    // The server compares: what came was not what had been read before.
    const { size, hash: now } = await hashFile(at);
    if (size !== file.size || now !== hash) throw changed(root, file);
    throw error;
  }
}

function changed(root: string, file: FoundFile): UsageError {
  const message = `${path.join(root, file.path)} changed while it was sent`;
  return new UsageError(message, 'try again when nothing writes to it');
}

/** At most so many at once; the first failure ends all, after those under way. */
async function each<Item>(
  items: readonly Item[],
  run: (item: Item) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failed = false;
  const worker = async (): Promise<void> => {
    while (next < items.length && !failed) {
      try {
        await run(items[next++]!);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
