/** Where the token server is: as configured, or as the issuer publishes it. */
import type { Clock } from '../lib/clock.ts';
import { isSafeUrl } from '../lib/safeUrl.ts';
import type { ExchangeSettings } from '../model/exchangeSettings.ts';
import { readJson } from './client.ts';

/** An issuer moves its endpoints rarely. */
const REMEMBERED_MS = 3_600_000;
const DOCUMENTS = ['.well-known/openid-configuration', '.well-known/oauth-authorization-server'];

export function tokenUrlOf(
  { issuer, tokenUrl, timeoutMs }: ExchangeSettings,
  clock: Pick<Clock, 'bootMs'>,
): () => Promise<string> {
  if (tokenUrl) return () => Promise.resolve(tokenUrl);
  let known: { url: Promise<string>; untilBootMs: number } | undefined;
  return () => {
    if (known && known.untilBootMs > clock.bootMs()) return known.url;
    const url = discover(issuer, timeoutMs);
    const mine = { url, untilBootMs: clock.bootMs() + REMEMBERED_MS };
    known = mine;
    // A failure is nobody's answer: whoever asks next tries again.
    url.catch(() => {
      if (known === mine) known = undefined;
    });
    return url;
  };
}

async function discover(issuer: string, timeoutMs: number): Promise<string> {
  const base = issuer.endsWith('/') ? issuer : `${issuer}/`;
  for (const document of DOCUMENTS) {
    const response = await fetch(new URL(document, base), {
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const body = await readJson(response);
    if (!response.ok || !body) continue;
    const url = body['token_endpoint'];
    if (body['issuer'] !== issuer) throw new Error(`${issuer} names itself another issuer`);
    if (typeof url === 'string' && isSafeUrl(url)) return url;
    throw new Error(`${issuer} names no token endpoint with https`);
  }
  throw new Error(`${issuer} publishes no metadata`);
}
