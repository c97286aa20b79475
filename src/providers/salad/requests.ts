/** Requests to SaladCloud: one try each, within the budget, and what their answer means. */
import type { Clock } from '../../lib/clock.ts';
import type { SaladSettings } from '../../model/saladSettings.ts';
import { createBudget } from './budget.ts';

/** A thousand instances are half a megabyte. */
const REPLY_LIMIT_BYTES = 16 * 1024 * 1024;
/** After a 429 that does not say how long. */
const DEFAULT_HOLD_MS = 15_000;
/** Longer is taken for a mistake. */
const LONGEST_HOLD_MS = 10 * 60_000;
/** Of what an error page says, for a person. */
const SHOWN_LENGTH = 300;
const TOO_MANY = 429;
const HELD = 'SaladCloud takes no more requests for now';
/** As SaladCloud would say to a key that it does not know. */
const NO_KEY = 401;

export type Reply<Value> =
  | { kind: 'done'; value: Value }
  /** It was understood, and nothing was done. */
  | { kind: 'refused'; status: number; reason: string; retryAfterMs: number }
  /** Nobody knows whether it was done. */
  | { kind: 'lost'; reason: string };

interface Request<Value> {
  method: 'GET' | 'POST' | 'PATCH';
  /** Below the organization. */
  path: string;
  body?: unknown;
  /** Throws where the reply is not what was expected. */
  read: (body: unknown) => Value;
}

export interface RequestOptions {
  settings: SaladSettings;
  clock: Clock;
  /** Throws where there is none. */
  readKey: () => Promise<string>;
}

export type Send = <Value>(request: Request<Value>) => Promise<Reply<Value>>;

export function createSend({ settings, clock, readKey }: RequestOptions): Send {
  const budget = createBudget(settings.requestsPerMinute, clock);
  const base = `${settings.url.replace(/\/+$/, '')}/organizations/${settings.organization}`;

  async function exchange({ method, path, body }: Request<unknown>, key: string): Promise<Answer> {
    const late = new AbortController();
    const timer = clock.setTimer(settings.replyTimeoutMs, () =>
      late.abort(new Error(`no answer within ${settings.replyTimeoutMs} ms`)),
    );
    try {
      const response = await fetch(`${base}${path}`, {
        method,
        // The key goes nowhere but to the address that was configured.
        redirect: 'error',
        signal: late.signal,
        headers: { 'Salad-Api-Key': key, accept: 'application/json', ...contentType(method, body) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { response, text: await readText(response) };
    } finally {
      timer.cancel();
    }
  }

  return async (request) => {
    const wait = budget.take();
    if (wait) return tooMany(wait.held ? HELD : 'more than salad.requestsPerMinute', wait.waitMs);
    let key: string;
    let answer: Answer;
    try {
      key = await readKey();
    } catch (error) {
      return { kind: 'refused', status: NO_KEY, reason: describe(error), retryAfterMs: 0 };
    }
    try {
      answer = await exchange(request, key);
    } catch (error) {
      return { kind: 'lost', reason: describe(error) };
    }
    const { status, headers } = answer.response;
    if (status === TOO_MANY) {
      const holdMs = retryAfter(headers.get('retry-after'), clock.now());
      budget.hold(holdMs);
      return tooMany(HELD, holdMs);
    }
    return meaning(answer, request);
  };
}

interface Answer {
  response: Response;
  text: string;
}

function contentType(method: string, body: unknown): Record<string, string> {
  if (body === undefined) return {};
  const kind = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return { 'content-type': kind };
}

async function readText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > REPLY_LIMIT_BYTES)
      throw new Error(`a reply of more than ${REPLY_LIMIT_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function tooMany(what: string, retryAfterMs: number): Reply<never> {
  const reason = `${what}: again in ${Math.ceil(retryAfterMs / 1000)} s`;
  return { kind: 'refused', status: TOO_MANY, reason, retryAfterMs };
}

/** Only what the API itself says is a refusal: an error page comes from somebody before it. */
function meaning<Value>({ response, text }: Answer, { read }: Request<Value>): Reply<Value> {
  const { status, ok } = response;
  const body = parse(text);
  if (ok) {
    try {
      return { kind: 'done', value: read(body) };
    } catch (error) {
      return { kind: 'lost', reason: `a reply that cannot be read: ${describe(error)}` };
    }
  }
  const said = isRecord(body) ? problem(body) : shown(text);
  const reason = `SaladCloud answered ${status}${said && `: ${said}`}`;
  if (status >= 500 || !isRecord(body)) return { kind: 'lost', reason };
  return { kind: 'refused', status, reason, retryAfterMs: 0 };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // An error page, or nothing at all.
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function problem(body: Record<string, unknown>): string {
  const { title, detail } = body;
  return shown([title, detail].filter((part) => typeof part === 'string').join(': '));
}

/** Of a page only the words. */
function shown(text: string): string {
  const words = text.replaceAll(/<(script|style)[\s\S]*?<\/\1>|<[^>]*>/gi, ' ');
  return words.replaceAll(/\s+/g, ' ').trim().slice(0, SHOWN_LENGTH);
}

function retryAfter(header: string | null, nowMs: number): number {
  if (header === null) return DEFAULT_HOLD_MS;
  const seconds = Number(header);
  const waitMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - nowMs;
  if (!Number.isFinite(waitMs)) return DEFAULT_HOLD_MS;
  return Math.min(LONGEST_HOLD_MS, Math.max(1000, waitMs));
}

/** What fetch says is only "failed": why is in its cause. */
function describe(error: unknown): string {
  const { message, cause } = error as Error;
  const why = cause instanceof Error ? cause.message || (cause as { code?: string }).code : '';
  return (why ? `${message}: ${why}` : message).slice(0, SHOWN_LENGTH);
}
