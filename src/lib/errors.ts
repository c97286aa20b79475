/** Every error a user can meet: one table of codes, and the class that carries them. */

interface ErrorKind {
  status: number;
  /** gRPC status code number. */
  grpc: number;
  title: string;
}

/** HTTP status and gRPC code of each error code. A new error is a new line here. */
export const ERRORS = {
  INVALID_ARGUMENT: { status: 400, grpc: 3, title: 'The request is not valid' },
  MALFORMED_BODY: { status: 400, grpc: 3, title: 'The body could not be read' },
  UNAUTHENTICATED: { status: 401, grpc: 16, title: 'No valid token' },
  PERMISSION_DENIED: { status: 403, grpc: 7, title: 'Not allowed' },
  POLICY: { status: 403, grpc: 7, title: 'The site does not allow this' },
  NOT_FOUND: { status: 404, grpc: 5, title: 'Not found' },
  METHOD_NOT_ALLOWED: { status: 405, grpc: 12, title: 'Method not allowed here' },
  IDEMPOTENCY_MISMATCH: { status: 409, grpc: 6, title: 'Same key, another body' },
  CONFLICT: { status: 409, grpc: 9, title: 'Not possible in this state' },
  STALE: { status: 409, grpc: 9, title: 'Something newer has replaced this' },
  INSTANCE_ENDED: { status: 410, grpc: 9, title: 'The machine is not wanted any more' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, grpc: 3, title: 'Unsupported content type' },
  BODY_TOO_LARGE: { status: 413, grpc: 8, title: 'The body is too large' },
  RANGE_NOT_SATISFIABLE: { status: 416, grpc: 11, title: 'No such bytes' },
  NEVER_FITS: { status: 422, grpc: 3, title: 'No pool could ever run this' },
  OVER_QUOTA: { status: 422, grpc: 8, title: 'More than the quota allows' },
  TOO_MANY: { status: 429, grpc: 8, title: 'A limit was reached' },
  INTERNAL: { status: 500, grpc: 13, title: 'Something went wrong inside Drover' },
  NOT_IMPLEMENTED: { status: 501, grpc: 12, title: 'The coordinator cannot do this' },
  UNAVAILABLE: { status: 503, grpc: 14, title: 'Not ready' },
  NO_SPACE: { status: 507, grpc: 8, title: 'No space is left' },
  TIMEOUT: { status: 504, grpc: 4, title: 'It took too long' },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

/** A failure somebody expected: it has a code, says which value, and what to try. */
export class DroverError extends Error {
  readonly code: ErrorCode;
  /** What to try next, in one sentence. */
  readonly hint: string | undefined;

  constructor(code: ErrorCode, detail: string, options: { hint?: string; cause?: unknown } = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DroverError';
    this.code = code;
    this.hint = options.hint;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  get title(): string {
    return ERRORS[this.code].title;
  }
}

/** For states the code claims cannot happen: stops the process rather than going on wrong. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}
