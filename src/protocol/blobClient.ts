/** Blobs from and to files: sent once, fetched with resume, checked by their hash on both ends. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { BatchWriter } from '../lib/batchWriter.ts';
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
const BUFFER_BYTES = 256 * 1024;

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
  const digest = createHash('sha256');
  const { size: total } = await stat(path);
  let size = 0;
  for await (const chunk of fileChunks(path)) {
    options.signal?.throwIfAborted();
    digest.update(chunk);
    size += chunk.length;
    options.onProgress?.(size, total);
  }
  return { hash: `sha256:${digest.digest('hex')}`, size };
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
  const body = (): Readable =>
    Readable.from(told(fileChunks(path), 0, size, transfer), { objectMode: false });
  return sendBlob(options, { hash, size, body }, transfer);
}

/** Sends what is in memory: a manifest, a text. */
export function putBytes(
  options: BlobClientOptions,
  bytes: Uint8Array,
  transfer: TransferOptions = {},
): Promise<BlobView> {
  const content = { hash: blobHashOf(bytes), size: bytes.length, body: () => bytes };
  return sendBlob(options, content, transfer);
}

function sendBlob(
  options: BlobClientOptions,
  { hash, size, body }: { hash: BlobHash; size: number; body: () => Readable | Uint8Array },
  transfer: TransferOptions,
): Promise<BlobView> {
  return repeated(transfer, async () => {
    const response = await send(options, {
      method: 'PUT',
      path: `/v1/blobs/${hash}`,
      headers: { 'content-type': 'application/octet-stream', 'content-length': String(size) },
      body: body(),
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
  const kept = await resumable(part);
  let { size } = kept;
  const file = await open(part, 'a', 0o600);
  const writer = new BatchWriter(file);
  try {
    await repeated(transfer, async (progress) => {
      for await (const chunk of rest(options, hash, size, transfer)) {
        await writer.add(chunk);
        kept.digest.update(chunk);
        size += chunk.length;
        progress();
      }
    });
    await writer.flush();
    await file.sync();
  } finally {
    await writer.settle();
    await file.close();
  }
  const found = `sha256:${kept.digest.digest('hex')}`;
  if (found !== hash) {
    await rm(part, { force: true });
    throw wrongBytes(`What came for ${hash} has the hash ${found}`);
  }
  await rename(part, path);
  return { size };
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
    for await (const chunk of rest(options, hash, 0, transfer)) {
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

/** The hash of what is there, to go on from. */
async function resumable(part: string) {
  const digest = createHash('sha256');
  let size = 0;
  try {
    for await (const chunk of fileChunks(part)) {
      digest.update(chunk);
      size += chunk.length;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return { digest, size };
}

/** The bytes from `start` on; none where the file was complete already. */
async function* rest(
  options: BlobClientOptions,
  hash: BlobHash,
  start: number,
  transfer: TransferOptions & { redirect?: boolean },
): AsyncGenerator<Uint8Array> {
  const { signal } = transfer;
  const headers: Record<string, string> = start > 0 ? { range: `bytes=${start}-` } : {};
  const path = `/v1/blobs/${hash}${transfer.redirect ? '?redirect=1' : ''}`;
  let response: Dispatcher.ResponseData;
  try {
    response = await send(options, { method: 'GET', path, headers, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 416) return;
    throw error;
  }
  const total = start + Number(response.headers['content-length']);
  try {
    yield* told(response.body as AsyncIterable<Uint8Array>, start, total, transfer);
  } catch (error) {
    throw asConnectionError(options, error, signal);
  }
}

async function* told(
  chunks: AsyncIterable<Uint8Array>,
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

function fileChunks(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: BUFFER_BYTES }) as AsyncIterable<Buffer>;
}
