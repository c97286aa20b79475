/** One HTTP POST to an address that was checked: no redirects, a little of the answer. */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { DroverError } from '../lib/errors.ts';
import { checkedAddress, type Resolve } from './address.ts';

/** More of an answer is not read. */
const ANSWER_LIMIT_BYTES = 64 * 1024;

export interface Post {
  url: string;
  body: string;
  headers: Record<string, string>;
  allowPrivate: boolean;
  signal: AbortSignal;
  resolve?: Resolve | undefined;
}

/** Resolves when it was answered with 2xx. Errors never name the URL, which may be a secret. */
export async function post(options: Post): Promise<void> {
  const { body, signal } = options;
  const url = parse(options.url);
  const { address, family } = await checkedAddress(
    url.hostname,
    options.allowPrivate,
    options.resolve,
  );
  signal.throwIfAborted();
  // Whatever name is asked for now, the answer is the address that was checked.
  const lookup: LookupFunction = (_host, { all }, answer) => {
    if (all) answer(null, [{ address, family }]);
    else answer(null, address, family);
  };
  const how: RequestOptions = {
    method: 'POST',
    lookup,
    signal,
    // A connection of its own: nothing is shared between channels.
    agent: false,
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'drover',
      ...options.headers,
    },
  };
  const status = await exchange(url, how, body);
  if (status >= 200 && status < 300) return;
  const redirect = status >= 300 && status < 400;
  const hint = redirect ? '; redirects are not followed: name the final address' : '';
  throw new DroverError('UNAVAILABLE', `the receiver answered ${status}${hint}`);
}

function parse(text: string): URL {
  const url = URL.parse(text.trim());
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new DroverError('INVALID_ARGUMENT', "the channel's URL is no http(s):// address");
}

function exchange(url: URL, how: RequestOptions, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(url, how, (response) => {
      drain(response).then(() => resolve(response.statusCode ?? 0), reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** To its end, so that the receiver sees a proper one; not beyond what an answer may be. */
async function drain(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    if (bytes <= ANSWER_LIMIT_BYTES) continue;
    response.destroy();
    return;
  }
}
