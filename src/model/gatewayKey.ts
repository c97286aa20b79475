/** API keys of a gateway that stands alone: how they look, and how its key file lists them. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Random } from '../lib/random.ts';
import { roleName, tenantName } from './authSettings.ts';

/** Says what it is, so that such a key is looked for in the file and never sent elsewhere. */
export const GATEWAY_KEY_PREFIX = 'drg_';

export const gatewayKeyEntry = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9._-]{1,63}$/, 'is no short plain name'),
  hash: z.string().regex(/^[0-9a-f]{64}$/, 'is not the SHA-256 of a key, in hex'),
  tenant: tenantName,
  user: z.string().min(1).max(200),
  roles: z.array(roleName).min(1),
  /** 2027-01-31, or with the time: 2027-01-31T12:00:00Z. */
  expires: z.union([z.iso.date(), z.iso.datetime({ offset: true })]).optional(),
});
export type GatewayKeyEntry = z.output<typeof gatewayKeyEntry>;

export function newGatewayKey(random: Random): string {
  return GATEWAY_KEY_PREFIX + random.hex(32);
}

/** Plain SHA-256 is enough: there is nothing to guess in 256 random bits. */
export function hashGatewayKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}
