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

/** What the caller of a client gets: the same error as from a Coordinator in its own process. */
export function fromConnectError(error: unknown): DroverError {
  if (error instanceof DroverError) return error;
  const status = ConnectError.from(error);
  const detail = status.findDetails(ErrorDetailSchema)[0];
  if (detail && isErrorCode(detail.code)) {
    const hint = detail.hint === '' ? {} : { hint: detail.hint };
    return new DroverError(detail.code, status.rawMessage, { ...hint, cause: error });
  }
  return new DroverError(codeOfStatus(status), status.rawMessage, { cause: error });
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

/** For statuses without our detail: from the network, from Connect, from a foreign server. */
const CODES: Record<Code, ErrorCode> = {
  [Code.Canceled]: 'UNAVAILABLE',
  [Code.Unknown]: 'INTERNAL',
  [Code.InvalidArgument]: 'INVALID_ARGUMENT',
  [Code.DeadlineExceeded]: 'TIMEOUT',
  [Code.NotFound]: 'NOT_FOUND',
  [Code.AlreadyExists]: 'CONFLICT',
  [Code.PermissionDenied]: 'PERMISSION_DENIED',
  [Code.ResourceExhausted]: 'TOO_MANY',
  [Code.FailedPrecondition]: 'CONFLICT',
  [Code.Aborted]: 'UNAVAILABLE',
  [Code.OutOfRange]: 'INVALID_ARGUMENT',
  [Code.Unimplemented]: 'METHOD_NOT_ALLOWED',
  [Code.Internal]: 'INTERNAL',
  [Code.Unavailable]: 'UNAVAILABLE',
  [Code.DataLoss]: 'INTERNAL',
  [Code.Unauthenticated]: 'UNAUTHENTICATED',
};

function codeOfStatus(status: ConnectError): ErrorCode {
  // The stream broke before a status came. Connect calls that internal; nothing is wrong inside.
  const cause = status.cause as NodeJS.ErrnoException | undefined;
  if (cause?.code?.startsWith('ERR_HTTP2_')) return 'UNAVAILABLE';
  // Connect has one status for "too large" and "too many"; only its words tell them apart.
  const tooLarge = /larger than configured (read|write)MaxBytes/.test(status.rawMessage);
  return tooLarge ? 'BODY_TOO_LARGE' : CODES[status.code];
}
