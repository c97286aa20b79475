/** Failures as application/problem+json (RFC 9457): code, detail, request id and what to try. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DroverError, ERRORS, type ErrorCode } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import { leftHeader, LimitReached, policyHeader, type Refusal } from './load/refusal.ts';
import { isTrainingUrl, trainingFailureOf } from './training/failure.ts';

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

/** One thing that is wrong with a request, and where. */
export interface Violation {
  path: string;
  message: string;
}

/** A request that does not fit its schema. */
export class InvalidRequest extends DroverError {
  readonly violations: Violation[];

  constructor(detail: string, violations: Violation[], hint?: string) {
    super('INVALID_ARGUMENT', detail, hint === undefined ? {} : { hint });
    this.violations = violations;
  }
}

export interface Problem {
  type: 'about:blank';
  title: string;
  status: number;
  code: string;
  detail: string;
  requestId: string;
  hint?: string;
  violations?: Violation[];
}

/** What to try where the error itself does not know better; docs/errors.md says the same. */
const USUAL_HINTS: Partial<Record<ErrorCode, string>> = {
  INVALID_ARGUMENT: 'Correct what is named in the detail; GET /openapi.json describes every field.',
  MALFORMED_BODY: 'Check the client, and send the request again.',
  UNAUTHENTICATED: 'Send a valid token: "Authorization: Bearer TOKEN".',
  PERMISSION_DENIED: 'Ask for a token with the scope that is missing.',
  NOT_FOUND: 'Check the address and the id in it.',
  CONFLICT: 'Read it again: it may be done already.',
  TOO_MANY: 'Wait, and try again.',
  UNAVAILABLE: 'Try again; GET /readyz says what is missing.',
  TIMEOUT: 'Try again, a submission with the same Idempotency-Key.',
};

export function problemOf(error: DroverError, requestId: string): Problem {
  const { status, title, code, message: detail } = error;
  const hint = error.hint ?? USUAL_HINTS[code];
  const problem: Problem = { type: 'about:blank', title, status, code, detail, requestId };
  if (hint !== undefined) problem.hint = hint;
  if (error instanceof InvalidRequest) problem.violations = error.violations;
  return problem;
}

function sendProblem(url: string, reply: FastifyReply, problem: Problem): FastifyReply {
  // RFC 9110: a 401 says which scheme is wanted.
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer realm="drover"');
  const [type, body] = failureBody(url, problem);
  return reply
    .code(problem.status)
    .header('content-type', type)
    .header('x-request-id', problem.requestId)
    .send(body);
}

/** Content type and text, as they are expected at this address. */
export function failureBody(url: string, problem: Problem): [type: string, body: string] {
  if (!isTrainingUrl(url)) return [PROBLEM_TYPE, JSON.stringify(problem)];
  return ['application/json; charset=utf-8', JSON.stringify(trainingFailureOf(problem))];
}

/** Every 429 says when to come again; a second where nobody knows better. */
function tellWhen(reply: FastifyReply, error: DroverError): void {
  const known = error instanceof LimitReached ? error.refusal : undefined;
  const { retryAfterSeconds, bucket }: Partial<Refusal> = known ?? {};
  reply.header('retry-after', String(retryAfterSeconds ?? 1));
  if (bucket === undefined) return;
  reply.header('ratelimit-policy', policyHeader(bucket));
  reply.header('ratelimit', leftHeader(bucket, retryAfterSeconds ?? 1));
}

export function errorHandler(
  log: Log,
): (error: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply {
  return (error, request, reply) => {
    const expected = expectedError(error, request);
    if (expected?.status === 429) tellWhen(reply, expected);
    if (expected) return sendProblem(request.url, reply, problemOf(expected, request.id));
    log.error(
      { requestId: request.id, method: request.method, url: request.url, err: error },
      'unexpected error in a request',
    );
    return sendProblem(request.url, reply, internalProblem(request.id));
  };
}

/** What went wrong inside is for the log; a caller learns only how to name it. */
function internalProblem(requestId: string): Problem {
  const { status, title } = ERRORS.INTERNAL;
  return {
    type: 'about:blank',
    title,
    status,
    code: 'INTERNAL',
    detail: 'This is a bug in Drover or a failure of its machine, not of the request.',
    requestId,
    hint: `The controller's log says more under the request id ${requestId}.`,
  };
}

function expectedError(error: unknown, request: FastifyRequest): DroverError | undefined {
  if (error instanceof DroverError) return error.code === 'INTERNAL' ? undefined : error;
  if (!(error instanceof Error)) return undefined;
  const { code, statusCode } = error as Error & { code?: unknown; statusCode?: unknown };
  const cause = { cause: error };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    const limit = request.routeOptions.bodyLimit;
    const hint = 'Send less at once, for instance by splitting a batch.';
    return new DroverError('BODY_TOO_LARGE', `The limit here is ${limit} bytes`, {
      hint,
      ...cause,
    });
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    const sent = request.headers['content-type'];
    const detail = sent ? `The content type ${sent} is not read here` : 'No content type was sent';
    const { reads = 'application/json' } = request.routeOptions.config;
    const hint = `Send "Content-Type: ${reads}".`;
    return new DroverError('UNSUPPORTED_MEDIA_TYPE', detail, { hint, ...cause });
  }
  if (code === 'ECONNRESET' || code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH') {
    return new DroverError('MALFORMED_BODY', 'The body ended before its stated length', cause);
  }
  const isClientFault = typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500;
  // The framework's own refusals (a bad URL and the like); its messages hold nothing of ours.
  if (isClientFault && typeof code === 'string' && code.startsWith('FST_ERR_')) {
    return new DroverError('INVALID_ARGUMENT', error.message, cause);
  }
  return undefined;
}
