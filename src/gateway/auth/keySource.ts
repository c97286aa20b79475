/** Where an issuer's keys come from: its discovery document, an address, a file, the settings. */
import { readFile } from 'node:fs/promises';
import { DroverError } from '../../lib/errors.ts';
import { isSafeUrl } from '../../lib/safeUrl.ts';
import type { IssuerSettings } from '../../model/authSettings.ts';
import type { AuthLimits } from './limits.ts';

export interface KeySource {
  /** A JSON Web Key Set, not yet checked. Rejects with UNAVAILABLE. */
  load(): Promise<unknown>;
  /** How long what was loaded is good without another look. */
  freshMs: number;
}

export function keySource(issuer: IssuerSettings, limits: AuthLimits): KeySource {
  const { jwksUri, jwksFile, keys } = issuer;
  if (keys) return { load: () => Promise.resolve({ keys }), freshMs: Infinity };
  if (jwksFile) return { load: () => readKeys(jwksFile), freshMs: limits.fileCheckMs };
  const load = async (): Promise<unknown> =>
    fetchJson(jwksUri ?? (await discover(issuer.issuer, limits)), limits);
  return { load, freshMs: limits.keysFreshMs };
}

async function readKeys(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as unknown;
  } catch (cause) {
    throw away(`the key set ${path} cannot be read`, cause);
  }
}

/** Found anew with each look at the keys: an issuer may move them. */
async function discover(issuer: string, limits: AuthLimits): Promise<string> {
  const document = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const found = (await fetchJson(document, limits)) as Record<string, unknown> | null;
  if (found?.['issuer'] !== issuer) throw away(`${document} is another issuer's`);
  const uri = found['jwks_uri'];
  if (typeof uri === 'string' && isSafeUrl(uri)) return uri;
  throw away(`${document} names no jwks_uri with https`);
}

async function fetchJson(url: string, limits: AuthLimits): Promise<unknown> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      // It could lead to where nothing is encrypted.
      redirect: 'error',
      signal: AbortSignal.timeout(limits.fetchMs),
    });
    if (!response.ok) throw new Error(`it answered ${response.status}`);
    return JSON.parse(await readText(response, limits.fetchBytes)) as unknown;
  } catch (cause) {
    throw away(`${url} did not answer as it should`, cause);
  }
}

async function readText(response: Response, mostBytes: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > mostBytes) throw new Error(`its answer is longer than ${mostBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

export function away(detail: string, cause?: unknown): DroverError {
  const why = cause instanceof Error ? `: ${reasonOf(cause)}` : '';
  return new DroverError('UNAVAILABLE', `The issuer's keys are not to be had: ${detail}${why}`, {
    hint: 'Try again; if it lasts, whoever runs this gateway finds more in its log.',
    cause,
  });
}

/** fetch says only "fetch failed"; its cause says why. */
function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
