/** Web pages of other origins may call only where the settings name them. */
import type { App } from '../app.ts';
import type { Stamp } from './headers.ts';

/** How long a browser may remember the answer about an origin. */
const PREFLIGHT_SECONDS = '600';

const PREFLIGHT = {
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'authorization, content-type, idempotency-key, last-event-id, range, if-none-match',
  'access-control-max-age': PREFLIGHT_SECONDS,
};
/** What scripts may read beside the few that are always theirs. */
const EXPOSED = 'x-request-id, retry-after, location, etag, content-range, accept-ranges, allow';

/**
 * Never with credentials: a token is sent by the page's own script, and our cookies are for pages
 * behind the proxy, which say themselves who may embed or call them.
 */
export function allowOrigins(app: App, origins: readonly string[], stamp: Stamp): void {
  if (origins.length === 0) return;
  const known = new Set(origins);
  app.addHook('onRequest', (request, reply, done) => {
    if (request.url.startsWith('/proxy/')) return done();
    reply.header('vary', 'origin');
    const { origin } = request.headers;
    if (origin === undefined || !known.has(origin)) return done();
    reply.header('access-control-allow-origin', origin);
    reply.header('access-control-expose-headers', EXPOSED);
    const asks = request.headers['access-control-request-method'];
    if (request.method !== 'OPTIONS' || asks === undefined) return done();
    stamp(reply);
    reply.code(204).headers(PREFLIGHT).send();
  });
}
