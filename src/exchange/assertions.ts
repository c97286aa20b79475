/** What we say of ourselves and of others to the token server: RFC 7521 and RFC 7523. */
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { Downstream } from '../model/downstream.ts';
import type { ExchangeSettings } from '../model/exchangeSettings.ts';
import { TOKEN_TYPE, type Credential } from './client.ts';
import type { SubjectToken } from './contract.ts';
import { signJwt, type SigningKey } from './signedJwt.ts';

/** Long enough for clocks that differ a little, too short to be of use to a thief. */
const LIFE_SECONDS = 60;

interface Signer {
  settings: ExchangeSettings;
  key: SigningKey | null;
  clock: Pick<Clock, 'now'>;
  random: Random;
}

/** The client's secret where there is one, else a statement under its key. */
export function clientCredential(signer: Signer): () => Credential {
  const { clientId, clientSecret } = signer.settings;
  const { key } = signer;
  if (clientSecret) {
    // Both are encoded before they are joined: RFC 6749, section 2.3.1.
    const words = [clientId, clientSecret].map((word) => formEncode(word)).join(':');
    const authorization = `Basic ${Buffer.from(words).toString('base64')}`;
    return () => ({ headers: { authorization }, fields: {} });
  }
  if (!key) return () => ({ headers: {}, fields: { client_id: clientId } });
  return () => ({
    headers: {},
    fields: {
      client_id: clientId,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: statement(signer, key, { sub: clientId }),
    },
  });
}

function formEncode(word: string): string {
  return new URLSearchParams({ '': word }).toString().slice(1);
}

/**
 * Our word that this person submitted a job, for a server that has agreed to take it. Undefined
 * without a key. The subject's own issuer is told too: it may be another than the server's.
 */
export function subjectAssertion(signer: Signer): ((who: Downstream) => SubjectToken) | undefined {
  const { key } = signer;
  if (!key) return undefined;
  return ({ issuer, subject }) => ({
    type: `${TOKEN_TYPE}jwt`,
    token: statement(signer, key, {
      sub: subject,
      // RFC 9493.
      sub_id: { format: 'iss_sub', iss: issuer, sub: subject },
    }),
  });
}

function statement(
  { settings, clock, random }: Signer,
  key: SigningKey,
  claims: Record<string, unknown>,
): string {
  const nowSeconds = Math.floor(clock.now() / 1000);
  return signJwt(key, {
    iss: settings.clientId,
    aud: settings.issuer || settings.tokenUrl,
    iat: nowSeconds,
    exp: nowSeconds + LIFE_SECONDS,
    jti: random.hex(16),
    ...claims,
  });
}
