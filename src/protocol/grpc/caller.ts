/** Who is calling: read from a call's metadata, before its body is. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createContextKey, type HandlerContext } from '@connectrpc/connect';
import { DroverError } from '../../lib/errors.ts';
import type { JobId, TokenId } from '../../model/ids.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../coordinator.ts';
import { Agent } from '../gen/drover/v1/agent_pb.ts';
import { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { knownScopes } from './wire.ts';

export const METADATA = {
  authorization: 'authorization',
  apiSecret: 'x-api-secret',
  requestId: 'x-request-id',
  token: 'x-token-id',
  tenant: 'x-tenant-id',
  user: 'x-user-id',
  scopes: 'x-scopes',
  job: 'x-job',
  issuer: 'x-issuer',
  subject: 'x-subject',
} as const;

export const WRONG_SECRET = `the secret in ${METADATA.apiSecret} is not right`;

export interface Caller {
  /** Present for calls on somebody's behalf. */
  principal?: Principal;
  /** What came as `authorization: Bearer`. */
  token?: string;
  /** A gateway with the right secret. */
  gateway: boolean;
}

export const callerKey = createContextKey<Caller>({ gateway: false });

/** The user a call is for; the gate has let no call without one through to where this is asked. */
export function principalOf(context: HandlerContext): Principal {
  const principal = context.values.get(callerKey).principal;
  if (!principal) throw new DroverError('UNAUTHENTICATED', 'the call names no user');
  return principal;
}

export function tokenOf(context: HandlerContext): string {
  const token = context.values.get(callerKey).token;
  if (token === undefined) throw new DroverError('UNAUTHENTICATED', 'the call has no token');
  return token;
}

/**
 * open: anybody. agent: a token, which the controller checks itself. gateway: the shared secret.
 * user: a token, or a gateway on a user's behalf.
 */
type Access = 'open' | 'agent' | 'gateway' | 'user';

/** Everything not named here is `user`. OpenTunnel is, too: it also asks for the secret itself. */
const COORDINATOR_ACCESS: Record<string, Access> = {
  Readiness: 'open',
  Authenticate: 'gateway',
  Admit: 'gateway',
  RegisterGateway: 'gateway',
};

function accessOf(context: HandlerContext): Access {
  switch (context.service.typeName) {
    case Health.typeName:
      return 'open';
    case Agent.typeName:
      return 'agent';
    case CoordinatorService.typeName:
      return COORDINATOR_ACCESS[context.method.name] ?? 'user';
    default:
      return 'gateway';
  }
}

/** Throws unless the call may go on; otherwise says who calls. */
export async function identify(
  context: HandlerContext,
  coordinator: Coordinator,
  apiSecret: string | undefined,
): Promise<Caller> {
  const headers = context.requestHeader;
  const caller: Caller = { gateway: isGateway(headers.get(METADATA.apiSecret), apiSecret) };
  const token = bearerOf(headers);
  if (token !== undefined) caller.token = token;
  switch (accessOf(context)) {
    case 'open':
      break;
    case 'agent':
      if (token === undefined) throw noToken();
      break;
    case 'gateway':
      requireGateway(caller);
      break;
    case 'user':
      // Metrics are the installation's, not a user's: a gateway may read them for nobody.
      if (caller.gateway && context.method.name === 'Metrics') break;
      caller.principal = caller.gateway
        ? principalFromMetadata(headers)
        : await authenticate(coordinator, token);
  }
  return caller;
}

export function requireGateway(caller: Caller): void {
  if (caller.gateway) return;
  throw new DroverError('PERMISSION_DENIED', `only a gateway may call this`, {
    hint: `Send the gateways' shared secret as ${METADATA.apiSecret}.`,
  });
}

/** A secret that is sent must be right, whatever the call, so that a wrong one is noticed. */
function isGateway(sent: string | null, expected: string | undefined): boolean {
  if (sent === null) return false;
  if (expected !== undefined && sameText(sent, expected)) return true;
  throw new DroverError('UNAUTHENTICATED', WRONG_SECRET);
}

/** In constant time: hashes have one length, whatever was sent. */
function sameText(sent: string, expected: string): boolean {
  if (expected !== hashed.text) hashed = { text: expected, hash: sha256(expected) };
  return timingSafeEqual(sha256(sent), hashed.hash);
}

/** What is expected is the same on every call. */
let hashed = { text: '', hash: sha256('') };

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function bearerOf(headers: Headers): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(headers.get(METADATA.authorization) ?? '')?.[1];
}

export async function authenticate(
  coordinator: Coordinator,
  token: string | undefined,
): Promise<Principal> {
  if (token === undefined) throw noToken();
  const principal = await coordinator.authenticate(token);
  if (principal) return principal;
  throw new DroverError('UNAUTHENTICATED', 'the token is unknown, expired or revoked', {
    hint: 'Ask whoever runs the cluster for a new one.',
  });
}

function noToken(): DroverError {
  return new DroverError('UNAUTHENTICATED', 'the call has no token', {
    hint: `Send ${METADATA.authorization}: Bearer <token>.`,
  });
}

export function principalToMetadata(principal: Principal): Record<string, string> {
  return {
    [METADATA.token]: encode(principal.token),
    [METADATA.tenant]: encode(principal.tenant),
    [METADATA.user]: encode(principal.user),
    [METADATA.scopes]: principal.scopes.join(','),
    ...(principal.job !== undefined && { [METADATA.job]: encode(principal.job) }),
    ...(principal.identity && {
      [METADATA.issuer]: encode(principal.identity.issuer),
      [METADATA.subject]: encode(principal.identity.subject),
    }),
  };
}

function principalFromMetadata(headers: Headers): Principal {
  return {
    token: decode(headers, METADATA.token) as TokenId,
    tenant: decode(headers, METADATA.tenant),
    user: decode(headers, METADATA.user),
    scopes: knownScopes((headers.get(METADATA.scopes) ?? '').split(',')),
    ...(headers.has(METADATA.job) && { job: decode(headers, METADATA.job) as JobId }),
    ...(headers.has(METADATA.issuer) && {
      identity: {
        issuer: decode(headers, METADATA.issuer),
        subject: decode(headers, METADATA.subject),
      },
    }),
  };
}

/** Metadata is ASCII, names are not. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function decode(headers: Headers, name: string): string {
  const value = headers.get(name);
  if (value === null) throw new DroverError('UNAUTHENTICATED', `the call has no ${name}`);
  try {
    return decodeURIComponent(value);
  } catch (cause) {
    throw new DroverError('INVALID_ARGUMENT', `${name} is not percent-encoded UTF-8`, { cause });
  }
}
