/** The hook every request passes first: it is counted, given a deadline and asked who it is. */
import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import { DroverError } from '../../lib/errors.ts';
import type { TokenId } from '../../model/ids.ts';
import type { Scope } from '../../model/token.ts';
import { ATTEMPT_HEADER } from '../../protocol/blobs.ts';
import type { Access, Pace } from '../app.ts';
import type { Flight, Flights } from '../flights.ts';
import type { Load } from '../load/load.ts';
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
  load: Load;
  mayUse: MayUse | undefined;
}

/** The hook of one route: built once, so that a request looks nothing up about its route. */
export function guardRoute(
  { cache, flights, load, mayUse }: GuardOptions,
  route: { method: string; url: string; access: Access; pace: Pace; orAttempt: boolean },
): onRequestHookHandler {
  const lane = flights.lane(route.method, route.url, route.pace);
  const asUser = identifier(cache, load, route.access);
  const identify = route.orAttempt ? orHolder(asUser, load, mayUse) : asUser;
  const isUsers = !['open', 'loopback', 'agent'].includes(route.access);
  /** Agents that name their attempt are no users. */
  const charge = (flight: Flight): void => {
    if (!isUsers || (route.orAttempt && ATTEMPT_HEADER in flight.request.headers)) return;
    lane.charge(flight, flight.request.principal);
  };
  return function guard(request, reply, done) {
    const flight = lane.begin(request, reply);
    reply.header('x-request-id', request.id);
    if (flights.closing) return done(closingError());
    try {
      const pending = identify(request);
      // Fastify waits for a promise that a hook returns; most requests do without one.
      if (pending !== undefined) return pending.then(() => charge(flight));
      charge(flight);
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

function identifier(cache: TokenCache, load: Load, access: Access): Identify {
  if (access === 'open') return () => undefined;
  if (access === 'agent') {
    return (request) => {
      request.bearer = bearerOf(request);
      load.checkAddress(request.raw, load.wasGood(request.bearer));
      return undefined;
    };
  }
  if (access === 'loopback') {
    const holder = holderOf(cache, load, 'fleet:read');
    return (request) => (isLocalCall(request.raw) ? undefined : holder(request));
  }
  return holderOf(cache, load, access);
}

/** An agent names its attempt; whoever does not is a user. */
function orHolder(asUser: Identify, load: Load, mayUse: MayUse | undefined): Identify {
  const look = async (request: FastifyRequest, uid: string): Promise<void> => {
    const bearer = bearerOf(request);
    load.checkAddress(request.raw, load.wasGood(bearer));
    const tenant = await mayUse?.(bearer, uid);
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

function holderOf(cache: TokenCache, load: Load, scope: Scope): Identify {
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
    load.checkAddress(request.raw, cache.knew(secret));
    return look(request, secret);
  };
}
