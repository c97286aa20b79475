/**
 * Checks JWTs of the configured issuers. A token's own words choose among what is configured, and
 * never bring anything along: not a key, not an address, not an algorithm.
 */
import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { SIGNATURE_ALGORITHMS, type IssuerSettings } from '../../model/authSettings.ts';
import type { Identity } from '../../model/token.ts';
import { identityOf, type Claims } from './claims.ts';
import { KeySet } from './keySet.ts';
import { keySource } from './keySource.ts';
import type { AuthLimits } from './limits.ts';
import { refused } from './refusal.ts';

export interface JwtOptions {
  issuers: readonly IssuerSettings[];
  clock: Clock;
  log: Log;
  limits: AuthLimits;
}

/** Whose the token is, and until when that may be remembered. */
interface CheckedJwt {
  identity: Identity;
  untilMs: number;
}

/** Rejects with UNAUTHENTICATED, or with UNAVAILABLE while the keys are not to be had. */
export type CheckJwt = (token: string) => Promise<CheckedJwt>;

interface Issuer {
  settings: IssuerSettings;
  keys: KeySet;
}

/** Three base64url parts; the last may be empty, which only says that nobody signed it. */
export function looksLikeJwt(secret: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(secret);
}

export function createJwtCheck(options: JwtOptions): CheckJwt {
  const { clock, log, limits } = options;
  const issuers = new Map<string, Issuer>();
  for (const settings of options.issuers) {
    const keys = new KeySet({
      source: keySource(settings, limits),
      algorithms: settings.algorithms,
      clock,
      log: log.child({ issuer: settings.name }),
      limits,
    });
    issuers.set(settings.issuer, { settings, keys });
  }
  return async (token) => {
    if (token.length > limits.jwtBytes) {
      const hint = 'Ask your identity provider to put fewer groups into it.';
      throw refused(`it is longer than ${limits.jwtBytes} bytes`, hint);
    }
    const { header, payload } = decode(token);
    const { algorithm, kid } = readHeader(header);
    const issuer = issuers.get(typeof payload['iss'] === 'string' ? payload['iss'] : '');
    if (!issuer) throw refused('its issuer (iss) is none of those configured here');
    const claims = await verify(token, { algorithm, kid, issuer, now: new Date(clock.now()) });
    const identity = identityOf(claims, issuer.settings);
    // In the moments after that, which a wrong clock may cost, it is checked each time.
    return { identity, untilMs: identity.expiresAtMs - issuer.settings.clockSkewMs };
  };
}

function decode(token: string): { header: Claims; payload: Claims } {
  try {
    return { header: decodeProtectedHeader(token), payload: decodeJwt(token) };
  } catch {
    throw refused('it is not a JWT that can be read');
  }
}

/** Access tokens (RFC 9068) and tokens without a type of their own; others mean something else. */
const TYPES = new Set(['jwt', 'at+jwt', 'application/jwt', 'application/at+jwt']);
/** By these a token names the key it wants to be checked with. */
const KEYS_ALONG = ['jwk', 'jku', 'x5u', 'x5c'];

function readHeader(header: Claims): { algorithm: string; kid: string | undefined } {
  const { alg, kid, typ } = header;
  const algorithm = SIGNATURE_ALGORITHMS.find((one) => one === alg);
  if (!algorithm) {
    const hint = `Taken are ${SIGNATURE_ALGORITHMS.join(', ')}, as the key of the issuer says.`;
    throw refused('it is not signed with an algorithm that is taken here', hint);
  }
  if (typ !== undefined && !(typeof typ === 'string' && TYPES.has(typ.toLowerCase()))) {
    throw refused('its type (typ) is not that of an access token');
  }
  if (header['crit'] !== undefined) throw refused('it demands extensions (crit)');
  if (header['b64'] !== undefined) throw refused('it demands extensions (b64)');
  const along = KEYS_ALONG.find((name) => header[name] !== undefined);
  if (along !== undefined) throw refused(`it brings its own key (${along})`);
  if (kid !== undefined && typeof kid !== 'string') throw refused('its key id (kid) is no text');
  return { algorithm, kid };
}

interface Check {
  algorithm: string;
  kid: string | undefined;
  issuer: Issuer;
  now: Date;
}

async function verify(token: string, { algorithm, kid, issuer, now }: Check): Promise<Claims> {
  const { settings, keys } = issuer;
  const key = await keys.find(kid, algorithm);
  if (!key) {
    const hint = 'If the issuer has just changed its keys, try again in a few seconds.';
    throw refused('its issuer has no such key (kid) for this algorithm', hint);
  }
  try {
    const { payload } = await jwtVerify(token, key.key, {
      algorithms: [algorithm],
      issuer: settings.issuer,
      audience: [settings.audience].flat(),
      clockTolerance: settings.clockSkewMs / 1000,
      currentDate: now,
      requiredClaims: ['exp'],
    });
    return refuseOtherKinds(payload);
  } catch (error) {
    throw explain(error, settings);
  }
}

/** By the same key for the same audience, and yet no access token: OpenID's logout, for one. */
function refuseOtherKinds(claims: Claims): Claims {
  if (claims['events'] !== undefined) throw refused('it tells of an event (a logout, say)');
  // Keycloak's word for what a token is for, where all have the same header.
  const { typ } = claims;
  if (typ === 'Refresh' || typ === 'Offline' || typ === 'Logout') {
    throw refused('it is no access token');
  }
  return claims;
}

function explain(error: unknown, { audience }: IssuerSettings): unknown {
  if (error instanceof errors.JWTExpired) {
    const { exp } = error.payload;
    const when = typeof exp === 'number' ? new Date(exp * 1000) : new Date(Number.NaN);
    const at = Number.isNaN(when.getTime()) ? '' : ` at ${when.toISOString()}`;
    return refused(`it expired${at}`);
  }
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') {
      const hint = `Ask your identity provider for one with the audience ${[audience].flat()[0]}.`;
      return refused('it is for another audience (aud)', hint);
    }
    if (error.claim === 'nbf' && error.reason === 'check_failed') {
      return refused('it is not valid yet (nbf)');
    }
    return refused(`its claim ${error.claim} is missing or not as it should be`);
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return refused('its signature is not that of the issuer');
  }
  return error instanceof errors.JOSEError ? refused('it is not a JWT that can be read') : error;
}
