/** One file by HTTP into a part of the cache, tried again from where a connection broke. */
import { createHash, type Hash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { request as send, type Dispatcher } from 'undici';
import type { BlobHash } from '../../model/blob.ts';
import { Unprepared } from '../runtimes/around.ts';
import type { MakeRoom } from '../cache/contentCache.ts';

/** Tries in a row that brought nothing. */
const TRIES = 5;
const FIRST_PAUSE_MS = 500;
const MOST_REDIRECTS = 5;
const SILENCE_MS = 60_000;
/** A person is told of each such step. */
const SAY_BYTES = 64 * 2 ** 20;

export interface Request {
  url: string;
  /** Made anew for each request: signatures have a time. Only the first host sees them. */
  headers?: (url: string) => Record<string, string>;
}

export interface DownloadOptions {
  part: string;
  makeRoom: MakeRoom;
  /** What is there already; answered by `unchanged` if it still is. */
  etag: string | undefined;
  /** Of the input, for messages: addresses may hold passwords. */
  name: string;
  signal: AbortSignal;
  say: (progress: string) => void;
}

export interface Downloaded {
  hash: BlobHash;
  etag: string;
}

interface Progress {
  digest: Hash;
  bytes: number;
  etag: string;
}

export async function download(
  request: Request,
  options: DownloadOptions,
): Promise<Downloaded | 'unchanged'> {
  const file = await open(options.part, 'w', 0o600);
  const done: Progress = { digest: createHash('sha256'), bytes: 0, etag: '' };
  try {
    for (let failures = 0; ; failures++) {
      const before = done.bytes;
      try {
        if (await receive(request, options, file, done)) return 'unchanged';
        await file.sync();
        return { hash: `sha256:${done.digest.digest('hex')}`, etag: done.etag };
      } catch (error) {
        if (done.bytes > before) failures = 0;
        if (error instanceof Unprepared || options.signal.aborted) throw error;
        if (failures + 1 >= TRIES) throw unreachable(options, error);
        await delay(FIRST_PAUSE_MS * 2 ** failures, undefined, { signal: options.signal });
      }
    }
  } finally {
    await file.close();
  }
}

/** True: it is what its tag says, nothing came. */
async function receive(
  request: Request,
  options: DownloadOptions,
  file: FileHandle,
  done: Progress,
): Promise<boolean> {
  const response = await answer(request, options, done);
  const { statusCode: status, headers, body } = response;
  if (status === 304) {
    await body.dump();
    return true;
  }
  if (status !== 206 || done.bytes === 0) await startOver(file, done);
  done.etag = strongTag(headers['etag']);
  const length = Number(headers['content-length'] ?? Number.NaN);
  const total = done.bytes + length;
  if (Number.isFinite(total)) options.makeRoom(total);
  let told = done.bytes;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (!Number.isFinite(total)) options.makeRoom(done.bytes + chunk.length);
    await file.write(chunk, 0, chunk.length, done.bytes);
    done.digest.update(chunk);
    done.bytes += chunk.length;
    if (done.bytes - told < SAY_BYTES) continue;
    told = done.bytes;
    options.say(`fetching the input ${options.name}: ${told} of ${total || 'unknown'} bytes`);
  }
  if (done.bytes < total) throw new Error(`the connection ended after ${done.bytes} bytes`);
  return false;
}

async function startOver(file: FileHandle, done: Progress): Promise<void> {
  await file.truncate(0);
  done.digest = createHash('sha256');
  done.bytes = 0;
}

/** A weak tag does not name bytes. */
function strongTag(value: string | string[] | undefined): string {
  return typeof value === 'string' && !value.startsWith('W/') ? value : '';
}

/** The first answer that has bytes; follows redirects without our headers to other hosts. */
async function answer(request: Request, options: DownloadOptions, done: Progress) {
  const { signal, etag } = options;
  const resumed: Record<string, string> =
    done.bytes > 0 && done.etag ? { range: `bytes=${done.bytes}-`, 'if-range': done.etag } : {};
  const asked = done.bytes === 0 && etag ? { 'if-none-match': etag } : {};
  let url = request.url;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const own = new URL(url).origin === new URL(request.url).origin;
    const headers = { ...resumed, ...asked, ...(own && request.headers?.(url)) };
    const timeouts = { headersTimeout: SILENCE_MS, bodyTimeout: SILENCE_MS };
    const response = await send(url, { method: 'GET', headers, signal, ...timeouts });
    const { location } = response.headers;
    if (response.statusCode < 300 || response.statusCode === 304) return response;
    await response.body.dump();
    const moved = response.statusCode < 400 && typeof location === 'string';
    if (!moved) throw refusal(response, options);
    url = new URL(location, url).href;
  }
  throw new Unprepared(`input ${options.name}: more than ${MOST_REDIRECTS} redirects`);
}

/** What may pass is tried again; what was said to be so is told as it is. */
function refusal({ statusCode }: Dispatcher.ResponseData, { name }: DownloadOptions): Error {
  const gone = statusCode === 404 || statusCode === 410;
  const why = gone ? ': it is not there any more' : '';
  const message = `input ${name}: its server answered ${statusCode}${why}`;
  const passing = statusCode >= 500 || statusCode === 429 || statusCode === 408;
  return passing ? new Error(message) : new Unprepared(message);
}

function unreachable({ name }: DownloadOptions, cause: unknown): Unprepared {
  const { message } = cause as Error;
  const text = message.startsWith('input ') ? message : `input ${name} cannot be had: ${message}`;
  return new Unprepared(text, { hostFault: true, cause });
}
