/** From a request's headers to who is calling, or the reason why not. */
import type { IncomingMessage } from 'node:http';
import { DroverError } from '../../lib/errors.ts';
import { isLoopback } from '../../lib/loopback.ts';
import type { Principal, Scope } from '../../model/token.ts';
import type { TokenCache } from './tokenCache.ts';

/** For what does not pass the router: upgrades. Rejects with a DroverError. */
export type Authorize = (request: IncomingMessage, scope: Scope) => Promise<Principal>;

export function createAuthorize(cache: TokenCache): Authorize {
  return async (request, scope) => {
    const principal = await cache.lookup(bearerOf(request));
    return checkScope(principal, scope);
  };
}

const BEARER = /^Bearer +([!-~]{1,4096}) *$/i;

/** Throws UNAUTHENTICATED where there is no bearer token. */
export function bearerOf(request: { headers: { authorization?: string | undefined } }): string {
  const header = request.headers.authorization;
  if (header === undefined) {
    throw new DroverError('UNAUTHENTICATED', 'The request has no Authorization header', {
      hint: 'Send "Authorization: Bearer TOKEN"; `drover tokens` makes one.',
    });
  }
  // The common form is taken apart without a regular expression: this is on every request.
  if (header.startsWith('Bearer ') && header.length > 7 && !header.includes(' ', 7)) {
    return header.slice(7);
  }
  const secret = BEARER.exec(header)?.[1];
  if (secret === undefined) {
    throw new DroverError('UNAUTHENTICATED', 'The Authorization header holds no bearer token', {
      hint: 'Send "Authorization: Bearer TOKEN".',
    });
  }
  return secret;
}

export function checkScope(principal: Principal | undefined, scope: Scope): Principal {
  if (principal === undefined) {
    throw new DroverError('UNAUTHENTICATED', 'The token is unknown, expired or revoked', {
      hint: 'Log in again with `drover login URL`, or ask an admin for a new token.',
    });
  }
  if (!principal.scopes.includes(scope)) {
    throw new DroverError('PERMISSION_DENIED', `This needs a token with the scope ${scope}`, {
      hint: `The token ${principal.token} has: ${principal.scopes.join(', ') || 'no scopes'}.`,
    });
  }
  return principal;
}

/** Called by a process on this machine, and not through a proxy for somebody else. */
export function isLocalCall(request: IncomingMessage): boolean {
  const { headers } = request;
  if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) return false;
  return isLoopback(request.socket.remoteAddress ?? '');
}
