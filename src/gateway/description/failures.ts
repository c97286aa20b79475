/** How a route can fail: derived from what it takes, so that no route forgets to say so. */
import { ERRORS, type ErrorCode } from '../../lib/errors.ts';
import type { Access } from '../app.ts';
import type { Response } from './document.ts';

interface RouteFacts {
  method: string;
  access: Access;
  /** Of its own: config.failures. */
  failures: readonly ErrorCode[];
  takes: { params?: unknown; querystring?: unknown; headers?: unknown; body?: unknown };
}

/** What can happen to any call: a bug, a controller that is away, a call that takes too long. */
const ALWAYS: readonly ErrorCode[] = ['INTERNAL', 'UNAVAILABLE', 'TIMEOUT'];
const GUARDED: readonly ErrorCode[] = ['UNAUTHENTICATED', 'PERMISSION_DENIED', 'TOO_MANY'];
/** A body is read wherever the method allows one, also where none is wanted. */
const WITH_BODY: readonly ErrorCode[] = [
  'MALFORMED_BODY',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
];
const BODILESS = new Set(['GET', 'HEAD']);

/** Statuses in rising order. */
export function failuresOf({ method, access, failures, takes }: RouteFacts): number[] {
  const codes = [...ALWAYS, ...failures];
  if (access !== 'open') codes.push(...GUARDED);
  if (takes.params) codes.push('NOT_FOUND');
  if (takes.querystring || takes.headers || takes.body) codes.push('INVALID_ARGUMENT');
  if (!BODILESS.has(method)) codes.push(...WITH_BODY);
  return [...new Set(codes.map((code) => ERRORS[code].status))].toSorted((a, b) => a - b);
}

export function failureName(status: number): string {
  return `Problem${status}`;
}

/** One answer for each status of the table of errors, shared by all routes. */
export function failureResponses(): Record<string, Response> {
  const byStatus = Map.groupBy(Object.keys(ERRORS) as ErrorCode[], (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [failureName(status), failureResponse(status, codes)]),
  );
}

function failureResponse(status: number, codes: readonly ErrorCode[]): Response {
  const [first] = codes;
  const title = first === undefined ? '' : ERRORS[first].title;
  const example = { type: 'about:blank', title, status, code: first, detail: title };
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].title}.`).join(' '),
    headers: headersOf(status),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        example: { ...example, requestId: 'r3f9a1c-7' },
      },
    },
  };
}

function headersOf(status: number): NonNullable<Response['headers']> {
  const text = (description: string) => ({ description, schema: { type: 'string' } });
  return {
    'x-request-id': text('Names this call in the logs of gateway and controller'),
    ...(status === 401 && { 'www-authenticate': text('The scheme that is wanted: Bearer') }),
    ...(status === 429 && { 'retry-after': text('Seconds to wait, where that is known') }),
  };
}
