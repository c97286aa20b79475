/** One call about a blob: bytes as they come, a signed URL followed, failures as typed errors. */
import type { Readable } from 'node:stream';
import { type Dispatcher, request } from 'undici';
import { ATTEMPT_HEADER } from './blobs.ts';
import { prepareClientTls } from './clientTls.ts';
import { ApiError, asConnectionError, type HttpOptions } from './http.ts';

export interface BlobClientOptions extends HttpOptions {
  /** An agent's attempt, for whose tenant it calls with its worker token. */
  attempt?: string | undefined;
}

/** The longest silence of a transfer; the server has the same. */
const SILENCE_MS = 300_000;

interface Sent {
  method: 'GET' | 'PUT';
  path: string;
  headers: Record<string, string>;
  /** A chunk is used no more when the next one is asked for, if it is larger than 64 KiB. */
  body?: AsyncIterable<Uint8Array>;
  signal?: AbortSignal | undefined;
}

/** A success, or a signed URL followed to one: without our token, which is not for others. */
export async function send(
  options: BlobClientOptions,
  sent: Sent,
): Promise<Dispatcher.ResponseData> {
  const { method, path, body, signal } = sent;
  const headers: Record<string, string> = { ...sent.headers, ...attemptHeader(options) };
  if (options.token) headers['authorization'] = `Bearer ${options.token}`;
  if (options.userAgent) headers['user-agent'] = options.userAgent;
  const common = {
    signal: signal ?? null,
    headersTimeout: SILENCE_MS,
    bodyTimeout: SILENCE_MS,
  };
  await prepareClientTls();
  try {
    const url = options.url.replace(/\/+$/, '') + path;
    // undici takes any iterable, though its types do not say so, and waits until one chunk is sent.
    const sentBody = (body as Readable | undefined) ?? null;
    const response = await request(url, { ...common, method, headers, body: sentBody });
    const { location } = response.headers;
    if (response.statusCode !== 307 || typeof location !== 'string') return await good(response);
    await response.body.dump();
    return await good(await request(location, { ...common, method, headers: sent.headers }));
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw asConnectionError(options, error, signal);
  }
}

async function good(response: Dispatcher.ResponseData): Promise<Dispatcher.ResponseData> {
  const { statusCode } = response;
  if (statusCode < 300) return response;
  const text = await response.body.text();
  throw new ApiError(statusCode, problemIn(text, statusCode));
}

function problemIn(text: string, status: number): { code?: string; detail?: string } {
  try {
    return JSON.parse(text) as { code?: string; detail?: string };
  } catch {
    // Not ours: a proxy's, or S3's own XML.
    return { code: 'UNEXPECTED_RESPONSE', detail: `the answer was ${status}` };
  }
}

export function attemptHeader({ attempt }: BlobClientOptions): Record<string, string> {
  return attempt === undefined ? {} : { [ATTEMPT_HEADER]: attempt };
}
