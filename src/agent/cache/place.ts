/** Puts files of the cache where an attempt finds them: its own copies, or read-only links. */
import { constants } from 'node:fs';
import { chmod, copyFile, link, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isBlobHash, type BlobHash } from '../../model/blob.ts';
import { parseManifest, type Manifest } from '../../model/manifest.ts';
import { getBlob, readBlob, type BlobClientOptions } from '../../protocol/blobClient.ts';
import { ApiError } from '../../protocol/http.ts';
import { Unprepared } from '../runtimes/around.ts';
import type { ContentCache, Fetch } from './contentCache.ts';

/** Files placed at once, and fetched at once where they are not there. */
const AT_ONCE = 16;
/** Such files are taken whole: streams cost more than they hold. */
const SMALL_BYTES = 256 * 1024;
/** How often a person is told. */
const SAY_EVERY = 500;

export interface Placing {
  cache: ContentCache;
  /** Says how a file of this hash is had; its size where that is known. */
  fetchOf: (hash: BlobHash, size?: number) => Fetch;
  signal: AbortSignal;
  say: (progress: string) => void;
}

/** Blobs of the attempt's tenant, by way of the controller. */
export function blobFetch(
  options: BlobClientOptions,
  what: string,
  signal: AbortSignal,
): Placing['fetchOf'] {
  return (hash, size) => async (path, makeRoom) => {
    const onProgress = (_done: number, total: number): void => makeRoom(total);
    try {
      if (size === undefined || size > SMALL_BYTES) {
        await getBlob(options, hash, path, { signal, onProgress });
      } else {
        makeRoom(size);
        const bytes = await readBlob(options, hash, { signal, mostBytes: SMALL_BYTES });
        await writeFile(path, bytes, { flush: true, mode: 0o600 });
      }
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      throw new Unprepared(`${what}: ${hash} is not in the blob store any more`, { cause: error });
    }
  };
}

export async function readManifest(
  { cache, fetchOf }: Placing,
  hash: string,
  what: string,
): Promise<Manifest> {
  if (!isBlobHash(hash)) throw new Unprepared(`${what}: ${hash} is not the name of a blob`);
  const text = await cache.use(hash, fetchOf(hash), (path) => readFile(path, 'utf8'));
  try {
    return parseManifest(text);
  } catch (error) {
    const message = `${what}: ${hash} lists no folder: ${(error as Error).message}`;
    throw new Unprepared(message, { cause: error });
  }
}

export type PlaceFile = (cached: string, target: string, executable: boolean) => Promise<void>;

/** The attempt's own: it may change them. Where the disk can, they share blocks until it does. */
export const copyWritable: PlaceFile = async (cached, target, executable) => {
  await copyFile(cached, target, constants.COPYFILE_FICLONE);
  await chmod(target, executable ? 0o755 : 0o644);
};

/** One file under another name; an executable one is a copy, for its mode is its own. */
export const linkReadOnly: PlaceFile = async (cached, target, executable) => {
  if (!executable) {
    try {
      return await link(cached, target);
    } catch (error) {
      // More names than the disk allows a file.
      if ((error as NodeJS.ErrnoException).code !== 'EMLINK') throw error;
    }
  }
  await copyFile(cached, target, constants.COPYFILE_FICLONE);
  await chmod(target, executable ? 0o555 : 0o444);
};

/** A whole folder. Links come last, so that nothing is written through one. */
export async function placeTree(
  placing: Placing,
  manifest: Manifest,
  target: string,
  place: PlaceFile,
): Promise<void> {
  const { cache, fetchOf, signal, say } = placing;
  const folders = new Set([target, ...manifest.folders.map((path) => join(target, path))]);
  for (const { path } of [...manifest.files, ...manifest.links]) {
    folders.add(dirname(join(target, path)));
  }
  for (const folder of folders) await mkdir(folder, { recursive: true, mode: 0o755 });
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < manifest.files.length) {
      signal.throwIfAborted();
      const { path, hash, size, executable } = manifest.files[next++]!;
      const at = join(target, path);
      await cache.use(hash, fetchOf(hash, size), (cached) => place(cached, at, executable));
      if (next % SAY_EVERY === 0) say(`placing files: ${next} of ${manifest.files.length}`);
    }
  };
  const workers = Array.from({ length: AT_ONCE }, worker);
  const ends = await Promise.allSettled(workers);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  for (const { path, target: to } of manifest.links) await symlink(to, join(target, path));
}
