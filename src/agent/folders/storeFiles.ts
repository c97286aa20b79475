/**
 * Files into blobs. A file is held open from its first byte read to its last byte sent, so that one
 * that is replaced or removed meanwhile is stored as it was; one that is written to meanwhile is
 * not stored at all.
 */
import { constants, type BigIntStats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import type { BlobHash } from '../../model/blob.ts';
import type { ManifestFile } from '../../model/manifest.ts';
import {
  hashFile,
  missingBlobs,
  putBlob,
  type BlobClientOptions,
} from '../../protocol/blobClient.ts';

/** A pipe or a link that took a file's place neither holds us up nor leads us away. */
const NOT_WAITING = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
/** Files held open at once. */
const BATCH = 64;

export interface FileToStore {
  /** In the manifest. */
  path: string;
  /** On this machine. */
  source: string;
}

/** What tells that a file is not what it was: it was replaced, written to or renamed. */
export type FileIdentity = string;

export type Outcome =
  | { kind: 'stored'; file: ManifestFile; identity: FileIdentity }
  /** Written to while it was read, or gone before. */
  | { kind: 'changed'; path: string };

export interface StoreOptions {
  signal?: AbortSignal | undefined;
  /** Bytes that had to be sent so far. */
  onSent?: (bytes: number) => void;
  /** Waits, with the files open, until a write that has just happened would show. */
  settle?: (() => Promise<void>) | undefined;
}

export async function storeFiles(
  blobs: BlobClientOptions,
  files: readonly FileToStore[],
  options: StoreOptions = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let at = 0; at < files.length; at += BATCH) {
    outcomes.push(...(await storeBatch(blobs, files.slice(at, at + BATCH), options)));
  }
  return outcomes;
}

interface Held {
  file: ManifestFile;
  identity: FileIdentity;
  content: string;
  handle: FileHandle;
}

async function storeBatch(
  blobs: BlobClientOptions,
  files: readonly FileToStore[],
  options: StoreOptions,
): Promise<Outcome[]> {
  const handles: FileHandle[] = [];
  try {
    const opened: (Opened | Outcome)[] = [];
    for (const file of files) opened.push(await openOne(file, handles));
    await options.settle?.();
    const read: (Held | Outcome)[] = [];
    for (const one of opened) read.push('stat' in one ? await hold(one, options.signal) : one);
    const held = read.filter((one) => 'handle' in one);
    const missing = new Set(
      await missingBlobs(
        blobs,
        held.map(({ file }) => file.hash),
      ),
    );
    const outcomes: Outcome[] = [];
    for (const one of read) {
      outcomes.push('handle' in one ? await send(blobs, one, missing, options) : one);
    }
    return outcomes;
  } finally {
    for (const handle of handles) await handle.close();
  }
}

interface Opened {
  path: string;
  handle: FileHandle;
  stat: BigIntStats;
}

async function openOne(
  { path, source }: FileToStore,
  handles: FileHandle[],
): Promise<Opened | Outcome> {
  let handle: FileHandle;
  try {
    handle = await open(source, NOT_WAITING);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ELOOP', 'ENXIO'].includes(code)) return { kind: 'changed', path };
    throw error;
  }
  handles.push(handle);
  const stat = await handle.stat({ bigint: true });
  return stat.isFile() ? { path, handle, stat } : { kind: 'changed', path };
}

async function hold(
  { path, handle, stat }: Opened,
  signal: AbortSignal | undefined,
): Promise<Held | Outcome> {
  const { hash, size } = await hashFile(sourceOf(handle), { signal });
  if (contentOf(await handle.stat({ bigint: true })) !== contentOf(stat)) {
    return { kind: 'changed', path };
  }
  const executable = (stat.mode & 0o111n) !== 0n;
  const content = contentOf(stat);
  return { file: { path, hash, size, executable }, identity: identityOf(stat), content, handle };
}

async function send(
  blobs: BlobClientOptions,
  { file, identity, content, handle }: Held,
  missing: Set<BlobHash>,
  { signal, onSent }: StoreOptions,
): Promise<Outcome> {
  const { path, hash, size } = file;
  try {
    if (missing.delete(hash)) {
      await putBlob(blobs, sourceOf(handle), { hash, size, signal });
      onSent?.(size);
    }
  } catch (error) {
    // Other bytes than were hashed are refused on the other side.
    const now = contentOf(await handle.stat({ bigint: true }));
    if (now !== content) return { kind: 'changed', path };
    throw error;
  }
  return { kind: 'stored', file, identity };
}

/** The open file, whatever has become of its name. */
function sourceOf(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** Of an open file: its name may have gone to another meanwhile, which is no write. */
function contentOf({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`;
}

export function identityOf(stat: {
  dev: bigint;
  ino: bigint;
  size: bigint;
  mtimeNs: bigint;
  ctimeNs: bigint;
}): FileIdentity {
  return `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}
