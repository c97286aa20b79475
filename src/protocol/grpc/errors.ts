/** Errors across gRPC: DroverError to a status with an ErrorDetail, and back. */
import { Code, ConnectError } from '@connectrpc/connect';
import { DroverError, ERRORS, type ErrorCode } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import { ErrorDetailSchema } from '../gen/drover/v1/error_pb.ts';

/** What leaves the server. A failure nobody expected is logged and says nothing about itself. */
export function toConnectError(error: unknown, requestId: string, log: Log): ConnectError {
  // Connect's own: a deadline, a client that left, a message that could not be read.
  if (error instanceof ConnectError) return error;
  if (error instanceof DroverError) {
    return statusOf(error.code, error.message, error.hint ?? '', requestId, error);
  }
  log.error({ requestId, error: describe(error) }, 'a call failed in an unexpected way');
  return statusOf('INTERNAL', ERRORS.INTERNAL.title, '', requestId, error);
}

function statusOf(
  code: ErrorCode,
  message: string,
  hint: string,
  requestId: string,
  cause: unknown,
): ConnectError {
  const detail = { desc: ErrorDetailSchema, value: { code, hint, requestId } };
  const status = STATUSES.get(ERRORS[code].grpc) ?? Code.Internal;
  return new ConnectError(message, status, undefined, [detail], cause);
}

/** Connect's codes by their numbers, which are gRPC's. */
const STATUSES = new Map<number, Code>(
  Object.values(Code).flatMap((code) => (typeof code === 'number' ? [[code, code]] : [])),
);

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** A failed call, as its caller may know it. */
export interface Failure {
  error: DroverError;
  /** What the coordinator said, where that is for the log alone. */
  withheld?: { status: string; message: string; details: string[] };
}

/** Of what another side says, so much is handed on. */
const LONGEST_MESSAGE = 2_000;

/**
 * What a client makes of a failed call. An error of Drover's own comes as from a coordinator in the
 * same process; of others only those words are handed on that a status means for the user.
 */
export function failureOf(thrown: unknown): Failure {
  if (thrown instanceof DroverError) return { error: thrown };
  const status = ConnectError.from(thrown);
  const kind = kindOf(status);
  const detail = status.findDetails(ErrorDetailSchema)[0];
  const message = status.rawMessage.slice(0, LONGEST_MESSAGE);
  if (kind.words !== undefined) {
    return { error: new DroverError(kind.code, kind.words), withheld: wordsOf(status) };
  }
  // A detail that contradicts its status was not written by Drover.
  if (detail && isErrorCode(detail.code) && agrees(detail.code, status.code)) {
    const hint = detail.hint === '' ? {} : { hint: detail.hint.slice(0, LONGEST_MESSAGE) };
    return { error: new DroverError(detail.code, message, hint) };
  }
  return { error: new DroverError(kind.code, message || ERRORS[kind.code].title) };
}

function wordsOf(status: ConnectError): NonNullable<Failure['withheld']> {
  const details = status.details.map((detail) => {
    if ('desc' in detail) return detail.desc.typeName;
    const text = Buffer.from(detail.value)
      .toString()
      .replaceAll(/[^\P{C}\n]+/gu, ' ');
    return `${detail.type}: ${text.trim()}`;
  });
  const { cause } = status;
  if (cause instanceof Error) details.push(describe(cause));
  return { status: Code[status.code], message: status.rawMessage, details };
}

const agrees = (code: ErrorCode, status: number): boolean => ERRORS[code].grpc === status;

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

interface Kind {
  code: ErrorCode;
  /** Said instead of the coordinator's own words. */
  words?: string;
}

const INSIDE: Kind = { code: 'INTERNAL', words: 'The coordinator failed inside' };

/** The one table of statuses. What is not named fell out of some machine: nobody may see how. */
const KINDS: Partial<Record<Code, Kind>> = {
  [Code.InvalidArgument]: { code: 'INVALID_ARGUMENT' },
  [Code.NotFound]: { code: 'NOT_FOUND' },
  [Code.AlreadyExists]: { code: 'CONFLICT' },
  [Code.PermissionDenied]: { code: 'PERMISSION_DENIED' },
  [Code.Unauthenticated]: { code: 'UNAUTHENTICATED' },
  [Code.FailedPrecondition]: { code: 'CONFLICT' },
  [Code.ResourceExhausted]: { code: 'TOO_MANY' },
  [Code.DeadlineExceeded]: { code: 'TIMEOUT', words: 'The coordinator did not answer in time' },
  [Code.Unavailable]: { code: 'UNAVAILABLE', words: 'The coordinator cannot be reached now' },
  [Code.Unimplemented]: { code: 'NOT_IMPLEMENTED', words: 'This coordinator has no such call' },
};

function kindOf(status: ConnectError): Kind {
  // Connect has one status for "too large" and "too many"; only its words tell them apart.
  const tooLarge = /larger than configured (read|write)MaxBytes/.test(status.rawMessage);
  if (tooLarge && status.code === Code.ResourceExhausted) return { code: 'BODY_TOO_LARGE' };
  return KINDS[status.code] ?? INSIDE;
}
