/** Folders from blobs: a manifest read and checked, its files fetched into place. */
import { chmod, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BlobHash } from '../model/blob.ts';
import { parseManifest, type Manifest, type ManifestFile } from '../model/manifest.ts';
import { getBlob, type BlobClientOptions } from './blobClient.ts';
import { ApiError } from './http.ts';

/** What is stored is not whole: fetching it again would not help. */
export class TornFolder extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'TornFolder';
  }
}

export interface FetchOptions {
  signal?: AbortSignal | undefined;
  /** Bytes done so far, of how many. */
  onProgress?: (doneBytes: number, totalBytes: number) => void;
}

/** `scratch` is a file of the caller's, removed again. Throws `TornFolder` when there is none. */
export async function fetchManifest(
  blobs: BlobClientOptions,
  hash: string,
  scratch: string,
  signal?: AbortSignal,
): Promise<Manifest> {
  try {
    await getBlob(blobs, hash as BlobHash, scratch, { signal });
    return parseManifest(await readFile(scratch, 'utf8'));
  } catch (error) {
    throw torn(error, `the list of its files, ${hash}`);
  } finally {
    await rm(scratch, { force: true });
  }
}

/** Into a folder that may exist; files of the same name are replaced, each whole. */
export async function fetchFolder(
  blobs: BlobClientOptions,
  { files, links, folders }: Manifest,
  target: string,
  { signal, onProgress }: FetchOptions = {},
): Promise<void> {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  let done = 0;
  await mkdir(target, { recursive: true });
  for (const folder of folders) await mkdir(join(target, folder), { recursive: true });
  for (const file of files) {
    await fetchFile(blobs, file, join(target, file.path), {
      signal,
      onProgress: (bytes) => onProgress?.(done + bytes, total),
    });
    done += file.size;
  }
  for (const link of links) await placeLink(join(target, link.path), link.target);
}

async function fetchFile(
  blobs: BlobClientOptions,
  { path, hash, executable }: ManifestFile,
  place: string,
  options: FetchOptions & { onProgress: (bytes: number) => void },
): Promise<void> {
  await mkdir(dirname(place), { recursive: true });
  // Not beside it under `.part`, which may be a name of the folder's own.
  const temporary = `${place}.${hash.slice(-12)}`;
  try {
    await getBlob(blobs, hash, temporary, options);
    await chmod(temporary, executable ? 0o755 : 0o644);
    await rename(temporary, place);
  } catch (error) {
    await rm(temporary, { force: true });
    throw torn(error, `${path}, ${hash}`);
  }
}

async function placeLink(place: string, target: string): Promise<void> {
  await mkdir(dirname(place), { recursive: true });
  const temporary = `${place}.new-link`;
  await rm(temporary, { force: true });
  await symlink(target, temporary);
  await rename(temporary, place);
}

function torn(error: unknown, what: string): unknown {
  if (error instanceof SyntaxError || (error instanceof Error && error.constructor === Error)) {
    return new TornFolder(`${what}, cannot be read: ${error.message}`, error);
  }
  if (error instanceof ApiError && (error.status === 404 || error.code === 'INVALID_ARGUMENT')) {
    return new TornFolder(`${what}, is not there any more: ${error.message}`, error);
  }
  return error;
}
