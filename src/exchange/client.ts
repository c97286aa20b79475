/** A client of a token server: token exchange by RFC 8693, refresh tokens by RFC 6749. */
import type { Clock } from '../lib/clock.ts';
import type { AudienceSettings } from '../model/exchangeSettings.ts';
import type { Exchanged, ExchangeWish, SubjectToken, TokenExchange } from './contract.ts';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
export const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:';
/** Where a server does not say how long a token lives: short enough to be safe with most. */
export const ASSUMED_LIFE_MS = 300_000;
/** No honest answer is longer. */
export const LONGEST_ANSWER_BYTES = 64 * 1024;
export const LONGEST_TOKEN = 16 * 1024;
/** What a header and a file of one line can carry. */
const TOKEN = /^[\x21-\x7e]+$/;
/** Says that we, not the subject, are not believed: an operator's matter. */
const OWN_FAULT = new Set(['invalid_client', 'unsupported_grant_type']);
/** No decision, whatever the status: RFC 6749, section 4.1.2.1. */
const UNDECIDED = new Set(['temporarily_unavailable', 'server_error']);

export interface ClientOptions {
  /** Where it is may have to be found out first. Rejects while that is not known. */
  tokenUrl: () => Promise<string>;
  /** What says who we are: headers and fields of the form. */
  credential: () => Credential;
  timeoutMs: number;
  clock: Pick<Clock, 'now'>;
}

export interface Credential {
  headers: Record<string, string>;
  fields: Record<string, string>;
}

export function createTokenExchange(options: ClientOptions): TokenExchange {
  return {
    exchange: (subject, audience, wants = {}) =>
      ask(options, exchangeFields(subject, audience, wants), [subject.token], wants),
    refresh(refreshToken, { resource, scope }) {
      const fields = {
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
        ...(resource && { resource }),
        ...(scope && { scope }),
      };
      return ask(options, fields, [refreshToken], {});
    },
  };
}

function exchangeFields(
  subject: SubjectToken,
  { audience, resource, scope }: AudienceSettings,
  wants: ExchangeWish,
): Record<string, string> {
  const scopes = [scope, wants.offlineAccess ? 'offline_access' : ''].filter(Boolean).join(' ');
  return {
    grant_type: GRANT,
    subject_token: subject.token,
    subject_token_type: subject.type,
    requested_token_type: `${TOKEN_TYPE}${wants.refreshToken ? 'refresh_token' : 'access_token'}`,
    ...(audience && { audience }),
    ...(resource && { resource }),
    ...(scopes && { scope: scopes }),
  };
}

async function ask(
  options: ClientOptions,
  fields: Record<string, string>,
  sent: readonly string[],
  wants: ExchangeWish,
): Promise<Exchanged> {
  const askedAtMs = options.clock.now();
  let answer: { status: number; body: Record<string, unknown> | undefined };
  try {
    const url = await options.tokenUrl();
    answer = await post(url, options.credential(), fields, options.timeoutMs);
  } catch (error) {
    return { kind: 'unavailable', reason: `the token server did not answer: ${why(error)}` };
  }
  const { status, body } = answer;
  if (status === 200 && body) return read(body, askedAtMs, wants);
  const code = body?.['error'];
  if (status < 400 || status >= 500 || status === 429 || typeof code !== 'string') {
    return { kind: 'unavailable', reason: `the token server answered ${status}` };
  }
  if (UNDECIDED.has(code)) {
    return { kind: 'unavailable', reason: `the token server answered ${status} ${code}` };
  }
  const reason = refusal(code, body?.['error_description'], sent);
  if (!OWN_FAULT.has(code)) return { kind: 'refused', reason };
  return { kind: 'unavailable', reason: `the token server does not take our requests: ${reason}` };
}

async function post(
  url: string,
  { headers, fields: own }: Credential,
  fields: Record<string, string>,
  timeoutMs: number,
): Promise<{ status: number; body: Record<string, unknown> | undefined }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { accept: 'application/json', ...headers },
    body: new URLSearchParams({ ...fields, ...own }),
    // What is sent is for this server and nobody else.
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  return { status: response.status, body: await readJson(response) };
}

/** Undefined where the answer is no JSON object. */
export async function readJson(response: Response): Promise<Record<string, unknown> | undefined> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    length += piece.length;
    if (length > LONGEST_ANSWER_BYTES) throw new Error('its answer is too long');
    pieces.push(piece);
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(pieces).toString());
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    // A proxy's page, say: the status tells enough.
    return undefined;
  }
}

function read(body: Record<string, unknown>, askedAtMs: number, wants: ExchangeWish): Exchanged {
  const token = body['access_token'];
  if (!isToken(token)) {
    return { kind: 'unavailable', reason: 'the token server answered without a token' };
  }
  // RFC 8693 has whatever was asked for under this name; some give a refresh token under its own.
  const besides = body['refresh_token'];
  const isRefresh = body['issued_token_type'] === `${TOKEN_TYPE}refresh_token`;
  const refreshToken = isToken(besides) ? besides : isRefresh ? token : null;
  if (wants.refreshToken && refreshToken === null) {
    return { kind: 'refused', reason: 'the token server gave no refresh token' };
  }
  const seconds = Number(body['expires_in']);
  const lifeMs = seconds > 0 && Number.isFinite(seconds) ? seconds * 1000 : ASSUMED_LIFE_MS;
  return { kind: 'granted', token, lifeMs, expiresAtMs: askedAtMs + lifeMs, refreshToken };
}

function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_TOKEN && TOKEN.test(value);
}

const LONGEST_REASON = 300;

/** In the server's words, without what we sent should it repeat that, and on one line. */
function refusal(code: string, description: unknown, sent: readonly string[]): string {
  const words = typeof description === 'string' ? `${code}: ${description}` : code;
  const hidden = sent.reduce((text, secret) => text.replaceAll(secret, '…'), words);
  return hidden.replaceAll(/[^\x20-\x7e…]+/g, ' ').slice(0, LONGEST_REASON);
}

/** `fetch` hides the reason in the cause. */
function why(error: unknown): string {
  const { message, name, cause } = error as Error;
  if (name === 'TimeoutError') return 'it took too long';
  const inner = cause as (Error & { code?: string }) | undefined;
  return inner?.code ?? inner?.message ?? message;
}
