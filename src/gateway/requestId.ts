/** Names a request: the caller's own name for it where that is sane, else a short new one. */
import type { IncomingMessage } from 'node:http';
import type { Random } from '../lib/random.ts';
import { requestScope } from '../protocol/requestScope.ts';
import type { App } from './app.ts';

/** What can stand in a log line and a header without harm. */
const SANE = /^[A-Za-z0-9._-]{1,64}$/;

export function requestIds(random: Random): (request: IncomingMessage) => string {
  // Random once, then counted: unique across gateways and cheap.
  const stem = `r${random.hex(3)}-`;
  let count = 0;
  return (request) => {
    const given = request.headers['x-request-id'];
    if (typeof given === 'string' && SANE.test(given)) return given;
    return stem + (count++).toString(36);
  };
}

/** What is called on behalf of a request carries its id. Bodies come in a scope of their own. */
export function scopeRequests(app: App): void {
  app.addHook('onRequest', (request, _reply, done) => requestScope.run(request.id, done));
  app.addHook('preHandler', (request, _reply, done) => requestScope.run(request.id, done));
}
