/** The hook every request passes first: it is counted, given a deadline and asked who it is. */
import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import { DroverError } from '../../lib/errors.ts';
import type { Scope } from '../../model/token.ts';
import type { Access, Pace } from '../app.ts';
import type { Flights } from '../flights.ts';
import { bearerOf, checkScope, isLocalCall } from './authorize.ts';
import type { TokenCache } from './tokenCache.ts';

export interface GuardOptions {
  cache: TokenCache;
  flights: Flights;
}

/** The hook of one route: built once, so that a request looks nothing up about its route. */
export function guardRoute(
  { cache, flights }: GuardOptions,
  route: { method: string; url: string; access: Access; pace: Pace },
): onRequestHookHandler {
  const lane = flights.lane(route.method, route.url, route.pace);
  const identify = identifier(cache, route.access);
  return function guard(request, reply, done) {
    lane.begin(request, reply);
    reply.header('x-request-id', request.id);
    if (flights.closing) return done(closingError());
    try {
      const pending = identify(request);
      // Fastify waits for a promise that a hook returns; most requests do without one.
      if (pending !== undefined) return pending;
      done();
    } catch (error) {
      done(error as Error);
    }
  };
}

export function closingError(): DroverError {
  return new DroverError('UNAVAILABLE', 'This gateway is closing', {
    hint: 'Try again in a few seconds.',
  });
}

/** Sets who is calling, at once where it is remembered, else by a promise; throws when refused. */
type Identify = (request: FastifyRequest) => Promise<void> | undefined;

function identifier(cache: TokenCache, access: Access): Identify {
  if (access === 'open') return () => undefined;
  if (access === 'agent') {
    return (request) => {
      request.bearer = bearerOf(request);
      return undefined;
    };
  }
  if (access === 'loopback') {
    const holder = holderOf(cache, 'fleet:read');
    return (request) => (isLocalCall(request.raw) ? undefined : holder(request));
  }
  return holderOf(cache, access);
}

function holderOf(cache: TokenCache, scope: Scope): Identify {
  const look = async (request: FastifyRequest, secret: string): Promise<void> => {
    request.principal = checkScope(await cache.lookup(secret), scope);
  };
  return (request) => {
    const secret = bearerOf(request);
    const principal = cache.peek(secret);
    if (principal !== undefined) {
      request.principal = checkScope(principal, scope);
      return undefined;
    }
    return look(request, secret);
  };
}
