/** One REST call: sends it, retries what is safe to repeat, turns failures into typed errors. */
import { setTimeout as delay } from 'node:timers/promises';
import { prepareClientTls } from './clientTls.ts';
import { isUntrusted } from './untrusted.ts';

/** The server answered with a problem. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly hint: string | undefined;
  readonly requestId: string | undefined;
  /** Each thing that is wrong with the request, and where. */
  readonly violations: Violation[];
  constructor(status: number, problem: Problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.name = 'ApiError';
    this.code = problem.code || `HTTP_${status}`;
    this.status = status;
    this.title = problem.title ?? '';
    this.hint = problem.hint;
    this.requestId = problem.requestId;
    this.violations = problem.violations ?? [];
  }
}

export interface Problem {
  code?: string;
  title?: string;
  detail?: string;
  hint?: string;
  requestId?: string;
  violations?: Violation[];
}

export interface Violation {
  path: string;
  message: string;
}

/** No answer: the server is not there, or the connection broke. */
export class ConnectionError extends Error {
  readonly url: string;
  /** True when nothing listens there: the request cannot have had an effect. */
  readonly refused: boolean;
  /** True when its certificate is not one to trust: trying again changes nothing. */
  readonly untrusted: boolean;
  constructor(url: string, cause: unknown) {
    const code = causeCode(cause);
    const untrusted = isUntrusted(code);
    super(`no connection to ${url} (${untrusted ? describe(cause) : (code ?? describe(cause))})`, {
      cause,
    });
    this.untrusted = untrusted;
    this.name = 'ConnectionError';
    this.url = url;
    this.refused = code !== undefined && NEVER_CONNECTED.has(code);
  }
}

export interface HttpOptions {
  url: string;
  token?: string | undefined;
  userAgent?: string | undefined;
}

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Safe to send twice: the server makes it one effect. GET is so by itself. */
  repeatable?: boolean;
  timeoutMs?: number;
}

/** How long one unary call may take; a parked `wait` adds its own time. */
export const CALL_TIMEOUT_MS = 30_000;
/** How long a repeatable call is tried again: covers a controller restart (2 s) with room. */
const RETRY_WINDOW_MS = 15_000;
const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 2_000;
const RETRYABLE_STATUS = new Set([502, 503, 504]);
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);

export interface Envelope<Data> {
  data: Data;
  meta: Record<string, unknown>;
}

export async function call<Data>(
  options: HttpOptions,
  path: string,
  request: Call = {},
): Promise<Envelope<Data>> {
  const repeatable = request.repeatable ?? (request.method ?? 'GET') === 'GET';
  const giveUpAt = performance.now() + RETRY_WINDOW_MS;
  for (let attempt = 0; ; attempt++) {
    try {
      return await callOnce<Data>(options, path, request);
    } catch (error) {
      // Refused at the first try: nobody is there, say so at once. Later it is a restart: go on.
      const refusedAtOnce = attempt === 0 && error instanceof ConnectionError && error.refused;
      const pauseMs = retryPauseMs(attempt);
      const late = performance.now() + pauseMs > giveUpAt;
      if (!repeatable || refusedAtOnce || late || !mayPass(error)) throw error;
      await delay(pauseMs, undefined, { signal: request.signal });
    }
  }
}

/** Whether the failure is of the connection or of a server that is just starting. */
export function mayPass(error: unknown): boolean {
  if (error instanceof ConnectionError) return !error.untrusted;
  return error instanceof ApiError && RETRYABLE_STATUS.has(error.status);
}

export function retryPauseMs(attempt: number): number {
  return Math.min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** attempt);
}

async function callOnce<Data>(
  options: HttpOptions,
  path: string,
  request: Call,
): Promise<Envelope<Data>> {
  const timeout = AbortSignal.timeout(request.timeoutMs ?? CALL_TIMEOUT_MS);
  const signal = request.signal ? AbortSignal.any([request.signal, timeout]) : timeout;
  const response = await send(options, path, { ...request, signal });
  const text = await readText(options, response, request.signal);
  const parsed = parseObject(text);
  if (parsed && 'data' in parsed) {
    return { data: parsed['data'] as Data, meta: (parsed['meta'] ?? {}) as Envelope<Data>['meta'] };
  }
  throw notOurs(options, response.status);
}

/** Sends and checks the status; the body is the caller's to read. */
export async function send(options: HttpOptions, path: string, request: Call): Promise<Response> {
  const url = new URL(options.url.replace(/\/+$/, '') + path);
  for (const [key, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined) url.searchParams.set(key, String(value));
  }
  const headers: Record<string, string> = { accept: 'application/json', ...request.headers };
  if (options.token) headers['authorization'] = `Bearer ${options.token}`;
  if (options.userAgent) headers['user-agent'] = options.userAgent;
  const init: RequestInit = { method: request.method ?? 'GET', headers, redirect: 'error' };
  if (request.signal) init.signal = request.signal;
  if (request.body !== undefined) {
    headers['content-type'] = 'application/json';
    init.body = JSON.stringify(request.body);
  }
  await prepareClientTls();
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    throw asConnectionError(options, error, request.signal);
  }
  if (response.ok) return response;
  const problem = parseObject(await readText(options, response, request.signal));
  if (problem && typeof problem['code'] === 'string') throw new ApiError(response.status, problem);
  throw notOurs(options, response.status);
}

async function readText(
  options: HttpOptions,
  response: Response,
  signal: AbortSignal | undefined,
): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw asConnectionError(options, error, signal);
  }
}

/** An abort the caller asked for stays what it is; all else is the connection's fault. */
export function asConnectionError(
  options: HttpOptions,
  error: unknown,
  signal: AbortSignal | undefined,
): unknown {
  const timedOut = error instanceof Error && error.name === 'TimeoutError';
  if (signal?.aborted && !timedOut) return error;
  return new ConnectionError(options.url, error);
}

function notOurs(options: HttpOptions, status: number): ApiError {
  return new ApiError(status, {
    code: 'UNEXPECTED_RESPONSE',
    detail: `${options.url} answered ${status} with something that is not Drover's`,
    hint: 'check the URL, and that no proxy stands between',
  });
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    // Not JSON, so not ours; the caller reports it with the status.
    return undefined;
  }
}

function causeCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const code = (at as NodeJS.ErrnoException).code;
    if (typeof code === 'string') return code;
    if (at instanceof AggregateError && at.errors.length > 0) return causeCode(at.errors[0]);
  }
  return undefined;
}

/** The innermost cause: fetch itself only says that it failed. */
function describe(error: unknown): string {
  let inner = error;
  for (let depth = 0; inner instanceof Error && inner.cause && depth < 5; depth++) {
    inner = inner.cause;
  }
  return inner instanceof Error ? inner.message : String(inner);
}
