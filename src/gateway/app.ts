/** The Fastify types every route file shares, and what a route must say about itself. */
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { ErrorCode } from '../lib/errors.ts';
import type { Principal, Scope } from '../model/token.ts';
import type { SubmitRequest } from '../protocol/coordinator.ts';

export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/**
 * Who may call a route: holders of a scope; anybody (`open`); a process on this machine, or from
 * elsewhere a holder of fleet:read (`loopback`);
 * an agent, whose token the controller checks (`agent`).
 */
export type Access = Scope | 'open' | 'loopback' | 'agent';

/** How long an answer may take: see unaryTimeoutMs and longPollTimeoutMs; a stream ends itself. */
export type Pace = 'unary' | 'longPoll' | 'stream';

/** Tokens of other services for jobs, see docs/downstream-tokens.md. */
export type Accompaniment = Pick<SubmitRequest, 'downstream' | 'downstreamTokens'>;
export type Accompany = (who: Principal, bearer: string) => Promise<Accompaniment>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Required on every route: the gateway refuses to start without it. */
    access?: Access;
    /** `unary` unless stated. */
    pace?: Pace;
    /** An agent may call it too, for the tenant of an attempt it holds (see ATTEMPT_HEADER). */
    orAttempt?: boolean;
    /** The content type of its body; JSON unless stated. */
    reads?: string;
    /** Errors of its own, beside those that follow from what it takes (description/failures.ts). */
    failures?: readonly ErrorCode[];
  }

  interface FastifyRequest {
    /** Who is calling. Set before the handler on every route whose access is a scope. */
    principal: Principal;
    /** The bearer token. Set on routes of agents. */
    bearer: string;
    /** SHA-256 of the body's bytes, where an Idempotency-Key was sent. */
    bodyHash: string | null;
    /** What goes with all that this caller submits; undefined where nothing ever does. */
    accompany(): Promise<Accompaniment> | undefined;
  }
}
