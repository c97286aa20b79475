/** Reads a JSON Web Key Set: what of it may check signatures, and by which algorithms. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { SIGNATURE_ALGORITHMS, type SignatureAlgorithm } from '../../model/authSettings.ts';

export interface IssuerKey {
  kid: string | undefined;
  key: KeyObject;
  /** Pinned: a token's own word on its algorithm only chooses among these. */
  algorithms: SignatureAlgorithm[];
}

const SHORTEST_RSA_BITS = 2048;
const CURVES: Partial<Record<string, SignatureAlgorithm>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
};

const keySet = z.object({ keys: z.array(z.unknown()) });
const webKey = z.looseObject({
  kty: z.enum(['RSA', 'EC', 'OKP']),
  kid: z.string().optional(),
  use: z.string().optional(),
  alg: z.string().optional(),
  key_ops: z.array(z.string()).optional(),
});

/**
 * Throws where it is no key set. Keys that are for something else, of a kind nobody here knows, or
 * too weak, are left out: issuers publish such beside the ones that count.
 */
export function readKeySet(
  body: unknown,
  unnamed: readonly SignatureAlgorithm[],
  mostKeys: number,
): IssuerKey[] {
  const { success, data } = keySet.safeParse(body);
  if (!success) throw new Error('it has no list of keys');
  const { keys } = data;
  if (keys.length > mostKeys) throw new Error(`it has more than ${mostKeys} keys`);
  return keys.flatMap((given) => {
    const parsed = webKey.safeParse(given);
    const key = parsed.success ? readKey(parsed.data, unnamed) : undefined;
    return key ? [key] : [];
  });
}

function readKey(
  given: z.output<typeof webKey>,
  unnamed: readonly SignatureAlgorithm[],
): IssuerKey | undefined {
  const { kid, use = 'sig', alg, key_ops: operations = ['verify'] } = given;
  if (use !== 'sig' || !operations.includes('verify')) return undefined;
  const key = publicKeyOf(given);
  if (!key) return undefined;
  const wanted = alg === undefined ? unnamed : SIGNATURE_ALGORITHMS.filter((one) => one === alg);
  const algorithms = wanted.filter((one) => fits(one, key));
  return algorithms.length > 0 ? { kid, key, algorithms } : undefined;
}

function publicKeyOf(key: Record<string, unknown>): KeyObject | undefined {
  try {
    return createPublicKey({ key, format: 'jwk' });
  } catch {
    // A curve that Node does not know, or numbers that are none: not a key for us.
    return undefined;
  }
}

function fits(algorithm: SignatureAlgorithm, key: KeyObject): boolean {
  const { asymmetricKeyType: kind, asymmetricKeyDetails: details } = key;
  if (kind === 'rsa') {
    return /^[RP]S/.test(algorithm) && (details?.modulusLength ?? 0) >= SHORTEST_RSA_BITS;
  }
  if (kind === 'ec') return CURVES[details?.namedCurve ?? ''] === algorithm;
  return kind === 'ed25519' && algorithm.startsWith('Ed');
}
