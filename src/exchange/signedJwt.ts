/** JWTs of our own, signed by the controller's key: who we are, and for whom we ask. */
import { createPrivateKey, sign, type KeyObject } from 'node:crypto';
import { DroverError } from '../lib/errors.ts';

export interface SigningKey {
  key: KeyObject;
  /** Empty: the server knows only one. */
  id: string;
  algorithm: string;
  hash: string | null;
}

/** By curve: RFC 7518, section 3.4, and RFC 8037. */
const CURVES: Record<string, { algorithm: string; hash: string }> = {
  prime256v1: { algorithm: 'ES256', hash: 'sha256' },
  secp384r1: { algorithm: 'ES384', hash: 'sha384' },
  secp521r1: { algorithm: 'ES512', hash: 'sha512' },
};
const SMALLEST_RSA_BITS = 2048;

/** A private key as PEM: RSA, EC (P-256, P-384, P-521) or Ed25519. */
export function readSigningKey(pem: string, id: string, path: string): SigningKey {
  const refuse = (why: string, cause?: unknown): never => {
    const hint = 'openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out FILE';
    throw new DroverError('INVALID_ARGUMENT', `exchange.keyFile (${path}) ${why}`, { hint, cause });
  };
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (cause) {
    return refuse('holds no private key in PEM', cause);
  }
  const details = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'rsa') {
    if ((details.modulusLength ?? 0) >= SMALLEST_RSA_BITS) {
      return { key, id, algorithm: 'RS256', hash: 'sha256' };
    }
    return refuse(`holds an RSA key of less than ${SMALLEST_RSA_BITS} bits`);
  }
  if (key.asymmetricKeyType === 'ed25519') return { key, id, algorithm: 'EdDSA', hash: null };
  const curve = CURVES[details.namedCurve ?? ''];
  if (key.asymmetricKeyType === 'ec' && curve) return { key, id, ...curve };
  return refuse('holds a key that JWTs are not signed with');
}

export function signJwt(by: SigningKey, claims: Readonly<Record<string, unknown>>): string {
  const header = { alg: by.algorithm, typ: 'JWT', ...(by.id && { kid: by.id }) };
  const text = `${encode(header)}.${encode(claims)}`;
  const key = { key: by.key, dsaEncoding: 'ieee-p1363' } as const;
  return `${text}.${sign(by.hash, Buffer.from(text), key).toString('base64url')}`;
}

function encode(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
