/** Issuers with keys of all kinds, and tokens that no library would make, for tests. */
import {
  createHmac,
  generateKeyPairSync,
  sign,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import type { SignatureAlgorithm } from '../../model/authSettings.ts';

export interface TestKey {
  kid: string;
  algorithm: SignatureAlgorithm;
  privateKey: KeyObject;
  publicKey: KeyObject;
  /** As the issuer publishes it. */
  jwk: JsonWebKey & { kty: 'RSA' | 'EC' | 'OKP' };
}

export function newTestKey(kid: string, algorithm: SignatureAlgorithm): TestKey {
  const { privateKey, publicKey } = pairFor(algorithm);
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: algorithm, use: 'sig' };
  return { kid, algorithm, privateKey, publicKey, jwk: jwk as TestKey['jwk'] };
}

function pairFor(algorithm: SignatureAlgorithm): { privateKey: KeyObject; publicKey: KeyObject } {
  if (algorithm.startsWith('Ed')) return generateKeyPairSync('ed25519');
  if (algorithm === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return generateKeyPairSync('rsa', { modulusLength: 2048 });
}

const base64url = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/** Header and payload as they are given: an object, or the raw text of one. */
export function forge(
  header: unknown,
  payload: unknown,
  signer: (input: string) => Buffer,
): string {
  const input = `${base64url(header)}.${base64url(payload)}`;
  return `${input}.${signer(input).toString('base64url')}`;
}

/** Signs as the algorithm of the key says, whatever the header claims. */
export function signerOf({ privateKey: key, algorithm }: TestKey): (input: string) => Buffer {
  return (input) => {
    const bytes = Buffer.from(input);
    if (algorithm.startsWith('Ed')) return sign(null, bytes, key);
    if (algorithm === 'ES256') return sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' });
    if (algorithm === 'PS256') return sign('sha256', bytes, { key, padding: 6, saltLength: 32 });
    return sign('sha256', bytes, key);
  };
}

/** As a library that takes whatever it is given for the secret. */
export function hmacWith(secret: string | Buffer): (input: string) => Buffer {
  return (input) => createHmac('sha256', secret).update(input).digest();
}

export function signed(key: TestKey, payload: object, header: object = {}): string {
  const full = { alg: key.algorithm, typ: 'JWT', kid: key.kid, ...header };
  return forge(full, payload, signerOf(key));
}
