/** Who comes in besides holders of the controller's own tokens: issuers of JWTs, a key file. */
import { z } from 'zod';
import { isSafeUrl } from '../lib/safeUrl.ts';
import { scopesOf } from './roles.ts';
import { MINUTE, SECOND, section, text } from './settingKinds.ts';

/** Asymmetric only: who can check a signature must not be able to make one. */
export const SIGNATURE_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

/** A role, a scope, or a name that issuers of old still send. */
export const roleName = z
  .string()
  .max(100)
  .refine((name) => scopesOf([name]).length > 0, 'is no role and no scope');
export const tenantName = z.string().min(1).max(100);

const claim = z.string().min(1).max(200);
const safeUrl = text.refine(isSafeUrl, 'is not https:// (or http:// on this machine)');

/** As an issuer publishes it; a private or a shared key has no place in a config file. */
const publicKey = z
  .looseObject({ kty: z.enum(['RSA', 'EC', 'OKP']) })
  .refine((key) => !('d' in key) && !('k' in key), 'holds a private key');

const issuer = z.strictObject({
  /** How logs and token ids call it. */
  name: z.string().regex(/^[A-Za-z0-9._-]{1,63}$/, 'is no short plain name'),
  /** Exactly as in the tokens' `iss`. */
  issuer: safeUrl,
  /** One of them must be in the tokens' `aud`. */
  audience: z.union([text.min(1), z.array(text.min(1)).min(1).max(20)]),
  /** Where its keys are: one of these four. */
  discovery: z.literal(true).optional(),
  jwksUri: safeUrl.optional(),
  jwksFile: text.min(1).optional(),
  keys: z.array(publicKey).min(1).max(100).optional(),
  /** For keys that do not name theirs: one for each kind of key, so that each key has one. */
  algorithms: z.array(z.enum(SIGNATURE_ALGORITHMS)).min(1).default(['RS256', 'ES256', 'EdDSA']),
  claims: section({
    user: claim.default('sub'),
    groups: claim.default('groups'),
    tenant: claim.optional(),
  }),
  /** All its people are of this tenant; else `claims.tenant` says whose they are. */
  tenant: tenantName.optional(),
  /** What the claim says -> a tenant here. Where given, nobody else of it comes in. */
  tenants: z.record(z.string().min(1).max(500), tenantName).default({}),
  /** Group -> roles and scopes. */
  roles: z.record(z.string().min(1).max(500), z.array(roleName)).default({}),
  /** For those in no group named above. */
  defaultRoles: z.array(roleName).default([]),
  clockSkewMs: z
    .int()
    .min(0)
    .max(5 * MINUTE)
    .default(30 * SECOND),
});
export type IssuerSettings = z.output<typeof issuer>;

export const authSettings = section({
  issuers: z.array(issuer).max(100).default([]),
  keyFile: text.default(''),
});
export type AuthSettings = z.output<typeof authSettings>;

export function checkAuth(
  { issuers }: AuthSettings,
  fail: (setting: string, message: string) => void,
): void {
  const refuse = (message: string): void => fail('auth.issuers', message);
  for (const [index, one] of issuers.entries()) {
    const sources = [one.discovery, one.jwksUri, one.jwksFile, one.keys];
    if (sources.filter((source) => source !== undefined).length !== 1) {
      refuse(`${one.name} needs one of discovery: true, jwksUri, jwksFile and keys`);
    }
    if ((one.tenant === undefined) === (one.claims.tenant === undefined)) {
      refuse(`${one.name} needs one of tenant and claims.tenant`);
    }
    if (one.tenant !== undefined && Object.keys(one.tenants).length > 0) {
      refuse(`${one.name} has a fixed tenant: tenants is for claims.tenant`);
    }
    for (const other of issuers.slice(0, index)) {
      if (other.name === one.name) refuse(`two are called ${one.name}`);
      if (other.issuer === one.issuer) refuse(`${one.issuer} is listed twice`);
    }
  }
}
