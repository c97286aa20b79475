/** Roles: named sets of scopes, so that people need not be given them one by one. */
import { SCOPES, type Scope } from './token.ts';

export const ROLE_NAMES = ['viewer', 'user', 'operator', 'admin'] as const;
export type Role = (typeof ROLE_NAMES)[number];

const VIEWER: Scope[] = ['jobs:read', 'fleet:read'];
const USER: Scope[] = [...VIEWER, 'jobs:manage'];
const OPERATOR: Scope[] = [
  ...USER,
  'fleet:manage',
  'models:deploy',
  'models:hotswap',
  'budgets:manage',
  'audit:read',
];

/** All of a tenant; what reaches into other tenants is given by name only. */
const ADMIN: Scope[] = SCOPES.filter((scope) => scope !== 'tenants:manage');

export const ROLES: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: VIEWER,
  user: USER,
  operator: OPERATOR,
  admin: ADMIN,
};

/** Permissions of the training gateway that came before, as issuers still send them. */
const HISTORICAL: Readonly<Record<string, readonly Scope[]>> = {
  'scaimind:manage': ['jobs:read', 'jobs:manage', 'fleet:read', 'models:deploy', 'models:hotswap'],
  'scaimind:read': VIEWER,
};

const NAMED = new Map<string, readonly string[]>([
  ...Object.entries(ROLES),
  ...Object.entries(HISTORICAL),
]);

/** Roles, scopes and historical names as scopes, in their own order; unknown names give nothing. */
export function scopesOf(names: readonly string[]): Scope[] {
  const found = new Set<string>(names.flatMap((name) => NAMED.get(name) ?? [name]));
  return SCOPES.filter((scope) => found.has(scope));
}
