/** Tokens of other services for jobs, by token exchange (RFC 8693), as configured. */
import { z } from 'zod';
import { isSafeUrl } from '../lib/safeUrl.ts';
import { duration, SECOND, section, text } from './settingKinds.ts';

/** Its name is a file's name in the attempt, and a word in events. */
const AUDIENCE_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** Metadata that says who calls, which no token may replace. */
const TAKEN_METADATA =
  /^x-(api-secret|tenant-id|user-id|request-id|token-id|scopes|job|issuer|subject)$/;

const audience = z.strictObject({
  /** As the token server knows the service. */
  audience: text.default(''),
  resource: text.default(''),
  scope: text.default(''),
  /** The metadata by which a foreign coordinator gets the token; empty: it does not. */
  metadata: z
    .string()
    .regex(/^(x-[a-z0-9-]{1,60})?$/, 'begins with x- and is in small letters')
    .refine((name) => !TAKEN_METADATA.test(name), 'is taken: it says who is calling')
    .default(''),
  /** No job is accepted, and no attempt starts, without a token for it. */
  required: z.boolean().default(false),
});
export type AudienceSettings = z.output<typeof audience>;

export const SUBJECT_TYPES = ['access_token', 'id_token', 'jwt'] as const;
export const REFRESH_WAYS = ['none', 'offline-access', 'refresh-token'] as const;

export const exchangeSettings = section({
  issuer: text.default(''),
  tokenUrl: text.default(''),
  clientId: text.default(''),
  clientSecret: text.default(''),
  clientSecretFile: text.default(''),
  keyFile: text.default(''),
  keyId: text.default(''),
  subjectType: z.enum(SUBJECT_TYPES).default('access_token'),
  audiences: z.record(z.string(), audience).default({}),
  refresh: z.enum(REFRESH_WAYS).default('none'),
  masterKeyFile: text.default(''),
  onRefusal: z.enum(['warn', 'stop']).default('warn'),
  timeoutMs: duration.default(5 * SECOND),
});
export type ExchangeSettings = z.output<typeof exchangeSettings>;

/** False: there is nothing to exchange for, and nobody pays for the rest. */
export function exchanges({ audiences }: ExchangeSettings): boolean {
  return Object.keys(audiences).length > 0;
}

export function checkExchange(
  exchange: ExchangeSettings,
  fail: (setting: string, message: string) => void,
): void {
  if (!exchanges(exchange)) return;
  const { issuer, tokenUrl, clientSecret, clientSecretFile } = exchange;
  if (!issuer && !tokenUrl) {
    fail('exchange.issuer', 'exchange.audiences need exchange.issuer or exchange.tokenUrl');
  }
  // Credentials and tokens go there: never in clear text over a network.
  for (const [setting, url] of Object.entries({ issuer, tokenUrl })) {
    if (url && !isSafeUrl(url)) {
      fail(`exchange.${setting}`, 'must begin with https:// (http:// only on this machine)');
    }
  }
  if (!exchange.clientId) fail('exchange.clientId', 'is needed with exchange.audiences');
  if (clientSecret && clientSecretFile) {
    fail('exchange.clientSecretFile', 'the secret is given twice: as a variable and in a file');
  }
  if (!clientSecret && !clientSecretFile && !exchange.keyFile) {
    const ways = 'DROVER_EXCHANGE_CLIENT_SECRET, exchange.clientSecretFile or exchange.keyFile';
    fail('exchange.clientSecretFile', `the client needs a credential: ${ways}`);
  }
  if (exchange.refresh !== 'none' && !exchange.masterKeyFile) {
    fail('exchange.masterKeyFile', `is needed with exchange.refresh: ${exchange.refresh}`);
  }
  for (const [name, { audience: aud, resource }] of Object.entries(exchange.audiences)) {
    if (!AUDIENCE_NAME.test(name)) {
      fail(
        'exchange.audiences',
        `"${name}" is no short plain name: small letters, digits, - and _`,
      );
    }
    if (!aud && !resource) {
      fail('exchange.audiences', `"${name}" names neither an audience nor a resource`);
    }
  }
}
