/** The hook every request passes first: it is counted, given a deadline and asked who it is. */
import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import { DroverError } from '../../lib/errors.ts';
import type { TokenId } from '../../model/ids.ts';
import type { Scope } from '../../model/token.ts';
import { ATTEMPT_HEADER } from '../../protocol/blobs.ts';
import type { Access, Pace } from '../app.ts';
import type { Flights } from '../flights.ts';
import { bearerOf, checkScope, isLocalCall } from './authorize.ts';
import type { TokenCache } from './tokenCache.ts';

/**
 * The tenant whose attempt the worker with this token holds; undefined where it holds no such one,
 * or where the token is nobody's.
 */
export type MayUse = (workerToken: string, attemptUid: string) => Promise<string | undefined>;

export interface GuardOptions {
  cache: TokenCache;
  flights: Flights;
  mayUse: MayUse | undefined;
}

/** The hook of one route: built once, so that a request looks nothing up about its route. */
export function guardRoute(
  { cache, flights, mayUse }: GuardOptions,
  route: { method: string; url: string; access: Access; pace: Pace; orAttempt: boolean },
): onRequestHookHandler {
  const lane = flights.lane(route.method, route.url, route.pace);
  const asUser = identifier(cache, route.access);
  const identify = route.orAttempt ? orHolder(asUser, mayUse) : asUser;
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

/** An agent names its attempt; whoever does not is a user. */
function orHolder(asUser: Identify, mayUse: MayUse | undefined): Identify {
  const look = async (request: FastifyRequest, uid: string): Promise<void> => {
    const tenant = await mayUse?.(bearerOf(request), uid);
    if (tenant === undefined) {
      throw new DroverError('UNAUTHENTICATED', `No worker with this token holds attempt ${uid}`, {
        hint: 'The attempt has ended or moved; an agent learns that by its next sync.',
      });
    }
    const token = `attempt ${uid}` as TokenId;
    request.principal = { token, tenant, user: '', scopes: [] };
  };
  return (request) => {
    const uid = request.headers[ATTEMPT_HEADER];
    return typeof uid === 'string' ? look(request, uid) : asUser(request);
  };
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
