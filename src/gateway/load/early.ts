/**
 * Refusals before routing. While a limit is reached, those that will be refused anyway must cost as
 * little as possible, or refusing takes the time that answering needs: no route, no body, no hooks,
 * no histogram; only who it is, as the cache of tokens knows it, and one answer.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { ERRORS } from '../../lib/errors.ts';
import { ATTEMPT_HEADER } from '../../protocol/blobs.ts';
import type { TokenCache } from '../auth/tokenCache.ts';
import { failureBody, type Problem } from '../problem.ts';
import { PAIRED_HEADERS } from '../security/headers.ts';
import type { Load } from './load.ts';
import type { Parking } from './parking.ts';
import { leftHeader, policyHeader, type Refusal } from './refusal.ts';

/** Agents' calls; health, so that an overloaded gateway is not taken for a dead one; cookies. */
const NEVER_REFUSED = /^\/(?:drover\.v1\.Agent\/|healthz|readyz|metrics|proxy\/)/;
const BEARER = 'Bearer ';
const { status, title } = ERRORS.TOO_MANY;

interface EarlyOptions {
  load: Load;
  cache: TokenCache;
  parking: Parking;
  requestId: (request: IncomingMessage) => string;
}

/** In front of whatever the server does with a request now. */
export function refuseEarly(server: Server, options: EarlyOptions): void {
  const handlers = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    const refusal = options.load.isAlert() ? refusalOf(request, options) : undefined;
    if (refusal !== undefined) return answer(request, response, refusal, options);
    for (const handler of handlers) handler.call(server, request, response);
  });
}

function refusalOf(request: IncomingMessage, { load, cache }: EarlyOptions): Refusal | undefined {
  if (NEVER_REFUSED.test(request.url ?? '')) return undefined;
  const { headers } = request;
  if (headers[ATTEMPT_HEADER] !== undefined) return undefined;
  const nowMs = performance.now();
  const header = headers.authorization;
  if (header === undefined || !header.startsWith(BEARER)) {
    return load.overload.isFull ? load.refuseExcess(nowMs) : undefined;
  }
  const principal = cache.peek(header.slice(BEARER.length));
  // Unknown here is not unknown: the guard asks, and decides when it knows.
  if (principal === undefined) return undefined;
  return load.refuseAny(load.accountOf(principal, nowMs), nowMs);
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { detail, hint, retryAfterSeconds, bucket }: Refusal,
  { requestId: idOf, parking }: EarlyOptions,
): void {
  const requestId = idOf(request);
  const code = 'TOO_MANY';
  const problem: Problem = { type: 'about:blank', title, status, code, detail, requestId, hint };
  const [type, body] = failureBody(request.url ?? '', problem);
  const headers = ['content-type', type, 'x-request-id', requestId, ...PAIRED_HEADERS];
  headers.push('retry-after', String(retryAfterSeconds));
  headers.push('content-length', String(Buffer.byteLength(body)));
  if (bucket !== undefined) {
    headers.push('ratelimit-policy', policyHeader(bucket));
    headers.push('ratelimit', leftHeader(bucket, retryAfterSeconds));
  }
  response.writeHead(status, headers);
  response.end(body);
  // A proxy sends others' requests over the same connection.
  const { via, forwarded, 'x-forwarded-for': forwardedFor } = request.headers;
  const isShared = (via ?? forwarded ?? forwardedFor) !== undefined;
  if (!isShared) parking.park(request.socket, retryAfterSeconds);
}
