/** Secrets: a prefix that says what it is, 256 random bits, kept only as a hash. */
import { createHash } from 'node:crypto';
import type { Random } from '../lib/random.ts';

export type SecretPrefix = 'drv' | 'drj' | 'drw' | 'drt';

export function newSecret(prefix: SecretPrefix, random: Random): string {
  return `${prefix}_${random.hex(32)}`;
}

/** Plain SHA-256 is enough: there is nothing to guess in 256 random bits. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
