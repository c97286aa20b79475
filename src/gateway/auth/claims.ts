/** What an issuer says of somebody, in the words of this installation: user, tenant, roles. */
import type { IssuerSettings } from '../../model/authSettings.ts';
import type { Identity } from '../../model/token.ts';
import { refused } from './refusal.ts';

export type Claims = Readonly<Record<string, unknown>>;

/** As long as names are elsewhere; OpenID's for a subject. */
const LONGEST = { tenant: 100, user: 200, subject: 255 };

export function identityOf(claims: Claims, settings: IssuerSettings): Identity {
  const { issuer, claims: names } = settings;
  // An address that nobody has checked could be anybody's.
  if (names.user === 'email' && claims['email_verified'] === false) {
    throw refused('its e-mail address is not verified by the issuer');
  }
  return {
    issuer,
    subject: nameIn(claims, 'sub', LONGEST.subject),
    tenant: tenantOf(claims, settings),
    user: nameIn(claims, names.user, LONGEST.user),
    roles: rolesOf(claims, settings),
    expiresAtMs: expiryOf(claims) + settings.clockSkewMs,
  };
}

function tenantOf(claims: Claims, { tenant, tenants, claims: names }: IssuerSettings): string {
  if (tenant !== undefined) return tenant;
  const said = nameIn(claims, names.tenant ?? '', LONGEST.tenant);
  if (Object.keys(tenants).length === 0) return said;
  const known = Object.hasOwn(tenants, said) ? tenants[said] : undefined;
  if (known !== undefined) return known;
  throw refused(`its claim ${names.tenant} names no tenant of this installation`);
}

/** Who is in no group that has roles gets the default ones. */
function rolesOf(claims: Claims, { roles, defaultRoles, claims: names }: IssuerSettings): string[] {
  const groups = textsOf(claimOf(claims, names.groups));
  const mapped = groups.flatMap((group) =>
    Object.hasOwn(roles, group) ? (roles[group] ?? []) : [],
  );
  return mapped.length > 0 ? [...new Set(mapped)] : defaultRoles;
}

/** A list of texts; or one text of words, as `scope` is. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return value.split(' ').filter((word) => word !== '');
  if (!Array.isArray(value)) return [];
  return value.filter((one): one is string => typeof one === 'string');
}

function nameIn(claims: Claims, claim: string, longest: number): string {
  const value = claimOf(claims, claim);
  if (typeof value !== 'string' || value === '') throw refused(`it has no claim ${claim}`);
  if (value.length > longest || /\p{Cc}/u.test(value) || !value.isWellFormed()) {
    throw refused(`its claim ${claim} is too long, or holds characters no name has`);
  }
  return value;
}

/** By its name; else by a path, as realm_access.roles. Names may hold dots themselves. */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const step of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
      return undefined;
    value = (value as Claims)[step];
  }
  return value;
}

/** Further than any clock goes, and a whole number with what is added to it. */
const LATEST_MS = 8.64e15;

/** It was checked to be a number, of any size. */
function expiryOf(claims: Claims): number {
  return Math.min(Math.floor(Number(claims['exp']) * 1000), LATEST_MS);
}
