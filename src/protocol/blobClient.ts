/** Blobs from and to files: sent once, fetched with resume, checked by their hash on both ends. */
import { rename, rm, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { filePieces } from '../lib/filePieces.ts';
import { freeMemory } from '../lib/freeMemory.ts';
import { HashingWriter } from '../lib/hashingWriter.ts';
import { type Hasher, HashThread } from '../lib/hashThread.ts';
import { blobHashOf, type BlobHash } from '../model/blob.ts';
import { attemptHeader, type BlobClientOptions, send } from './blobHttp.ts';
import { MISSING_HASHES, type BlobView } from './blobs.ts';
import {
  ApiError,
  asConnectionError,
  call,
  ConnectionError,
  mayPass,
  retryPauseMs,
} from './http.ts';

export type { BlobClientOptions } from './blobHttp.ts';

export interface TransferOptions {
  /** Bytes done so far, of how many. */
  onProgress?: (doneBytes: number, totalBytes: number) => void;
  signal?: AbortSignal | undefined;
}

/** Tries of one transfer in a row that moved nothing. */
const TRIES = 6;

/** Those of `hashes` that have to be sent, in their order. */
export async function missingBlobs(
  options: BlobClientOptions,
  hashes: readonly BlobHash[],
): Promise<BlobHash[]> {
  const missing: BlobHash[] = [];
  for (let at = 0; at < hashes.length; at += MISSING_HASHES) {
    const body = { hashes: hashes.slice(at, at + MISSING_HASHES) };
    const headers = attemptHeader(options);
    const asked = { method: 'POST', body, headers, repeatable: true } as const;
    const { data } = await call<{ missing: BlobHash[] }>(options, '/v1/blobs/missing', asked);
    missing.push(...data.missing);
  }
  return missing;
}

/** The name a file's content would have as a blob. */
export async function hashFile(
  path: string,
  options: TransferOptions = {},
): Promise<{ hash: BlobHash; size: number }> {
  const { size: total } = await stat(path);
  const thread = new HashThread();
  try {
    const hasher = thread.hasher(total);
    const size = await hashPieces(hasher, path, (done) => {
      options.signal?.throwIfAborted();
      options.onProgress?.(done, total);
    });
    return { hash: `sha256:${await hasher.digest()}`, size };
  } finally {
    await thread.end();
  }
}

async function hashPieces(
  hasher: Hasher,
  path: string,
  onProgress?: (doneBytes: number) => void,
): Promise<number> {
  let size = 0;
  for await (const piece of filePieces(path)) {
    await hasher.update(piece);
    size += piece.length;
    onProgress?.(size);
  }
  return size;
}

/** Sends a file. It is read twice where its hash is not given. */
export async function putBlob(
  options: BlobClientOptions,
  path: string,
  transfer: TransferOptions & { hash?: BlobHash; size?: number } = {},
): Promise<BlobView> {
  const { hash, size } =
    transfer.hash !== undefined && transfer.size !== undefined
      ? { hash: transfer.hash, size: transfer.size }
      : await hashFile(path, { signal: transfer.signal });
  const chunks = (): AsyncIterable<Uint8Array> => filePieces(path);
  return sendBlob(options, { hash, size, chunks }, transfer);
}

/** Sends what is in memory: a manifest, a text. */
export function putBytes(
  options: BlobClientOptions,
  bytes: Uint8Array,
  transfer: TransferOptions = {},
): Promise<BlobView> {
  const chunks = (): Iterable<Uint8Array> => (bytes.length > 0 ? [bytes] : []);
  return sendBlob(options, { hash: blobHashOf(bytes), size: bytes.length, chunks }, transfer);
}

type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

function sendBlob(
  options: BlobClientOptions,
  { hash, size, chunks }: { hash: BlobHash; size: number; chunks: () => Chunks },
  transfer: TransferOptions,
): Promise<BlobView> {
  return repeated(transfer, async () => {
    const response = await send(options, {
      method: 'PUT',
      path: `/v1/blobs/${hash}`,
      headers: { 'content-type': 'application/octet-stream', 'content-length': String(size) },
      body: told(chunks(), 0, size, transfer),
      signal: transfer.signal,
    });
    const { data } = (await response.body.json()) as { data: BlobView };
    return data;
  });
}

/**
 * Fetches a blob into a file. What is there under `PATH.part` from an earlier try is used; `path`
 * itself appears whole and checked, or not at all.
 */
export async function getBlob(
  options: BlobClientOptions,
  hash: BlobHash,
  path: string,
  transfer: TransferOptions & { redirect?: boolean } = {},
): Promise<{ size: number }> {
  const part = `${path}.part`;
  const thread = new HashThread();
  try {
    const { found, size } = await fetchInto(part, options, hash, transfer, thread);
    if (found !== hash) {
      await rm(part, { force: true });
      throw wrongBytes(`What came for ${hash} has the hash ${found}`);
    }
    await rename(part, path);
    return { size };
  } finally {
    await thread.end();
  }
}

/** What is there already is hashed first; what comes is hashed while it is written. */
async function fetchInto(
  part: string,
  options: BlobClientOptions,
  hash: BlobHash,
  transfer: TransferOptions & { redirect?: boolean },
  thread: HashThread,
): Promise<{ found: string; size: number }> {
  const position = await sizeOf(part);
  const kept = position > 0 ? thread.hasher(Number.POSITIVE_INFINITY) : undefined;
  if (kept) await hashPieces(kept, part);
  let writer: HashingWriter | undefined;
  let size = position;
  try {
    await repeated(transfer, async (progress) => {
      const { chunks, total } = await rest(options, hash, size, transfer);
      const hasher = kept ?? thread.hasher(total);
      writer ??= await HashingWriter.open(part, { hasher, size: total, position });
      for await (const chunk of chunks) {
        size += chunk.length;
        await writer.add(chunk);
        freeMemory(chunk);
        progress();
      }
    });
    return { found: `sha256:${await writer!.finish()}`, size };
  } finally {
    await writer?.close();
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

/** A small blob in memory: a manifest, a text. One larger than `mostBytes` is refused. */
export async function readBlob(
  options: BlobClientOptions,
  hash: BlobHash,
  { mostBytes, ...transfer }: TransferOptions & { mostBytes: number },
): Promise<Buffer> {
  return repeated(transfer, async () => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const { chunks: coming } = await rest(options, hash, 0, transfer);
    for await (const chunk of coming) {
      size += chunk.length;
      if (size > mostBytes) throw wrongBytes(`${hash} is larger than ${mostBytes} bytes`);
      chunks.push(chunk);
    }
    const bytes = Buffer.concat(chunks);
    const found = blobHashOf(bytes);
    if (found !== hash) throw wrongBytes(`What came for ${hash} has the hash ${found}`);
    return bytes;
  });
}

function wrongBytes(detail: string): ApiError {
  const hint = 'It was discarded; fetch it again.';
  return new ApiError(422, { code: 'INVALID_ARGUMENT', detail, hint });
}

interface Rest {
  chunks: Chunks;
  /** Of the whole blob. */
  total: number;
}

/** The bytes from `start` on; none where the file was complete already. */
async function rest(
  options: BlobClientOptions,
  hash: BlobHash,
  start: number,
  transfer: TransferOptions & { redirect?: boolean },
): Promise<Rest> {
  const { signal } = transfer;
  const headers: Record<string, string> = start > 0 ? { range: `bytes=${start}-` } : {};
  const path = `/v1/blobs/${hash}${transfer.redirect ? '?redirect=1' : ''}`;
  let response: Dispatcher.ResponseData;
  try {
    response = await send(options, { method: 'GET', path, headers, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 416) return { chunks: [], total: start };
    throw error;
  }
  const total = start + Number(response.headers['content-length']);
  const body = told(response.body as AsyncIterable<Uint8Array>, start, total, transfer);
  return { chunks: orConnectionError(options, body, signal), total };
}

async function* orConnectionError(
  options: BlobClientOptions,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    throw asConnectionError(options, error, signal);
  }
}

async function* told(
  chunks: Chunks,
  start: number,
  total: number,
  { onProgress, signal }: TransferOptions,
): AsyncGenerator<Uint8Array> {
  let done = start;
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    done += chunk.length;
    yield chunk;
    onProgress?.(done, total);
  }
}

/** Again after a broken connection, as long as tries move something. */
async function repeated<Result>(
  { signal }: TransferOptions,
  run: (progress: () => void) => Promise<Result>,
): Promise<Result> {
  for (let failures = 0; ; failures++) {
    try {
      return await run(() => (failures = 0));
    } catch (error) {
      const refusedAtOnce = failures === 0 && error instanceof ConnectionError && error.refused;
      if (refusedAtOnce || failures + 1 >= TRIES || !mayPass(error)) throw error;
      await delay(retryPauseMs(failures), undefined, { signal });
    }
  }
}
