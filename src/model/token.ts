/** A token: a secret that says who is calling. Stored as a hash, shown once. */
import type { AttemptUid, JobId, TokenId } from './ids.ts';

export const TOKEN_KINDS = ['user', 'join', 'attempt'] as const;
export type TokenKind = (typeof TOKEN_KINDS)[number];

export const SCOPES = [
  'jobs:read',
  'jobs:manage',
  'fleet:read',
  'fleet:manage',
  'tokens:manage',
  'budgets:manage',
  'audit:read',
  'models:deploy',
  'models:hotswap',
  'tenants:manage',
] as const;
export type Scope = (typeof SCOPES)[number];

export interface Token {
  id: TokenId;
  kind: TokenKind;
  name: string;
  tenant: string;
  user: string;
  scopes: Scope[];
  hash: string;
  /** Join tokens: the pool an agent joins, and how many workers may live by it (0: any number). */
  pool: string;
  maxLiveWorkers: number;
  /** Of a running job that may submit others: good until that attempt ends. */
  attempt: AttemptUid | null;
  createdAtMs: number;
  expiresAtMs: number | null;
  revokedAtMs: number | null;
  /** Kept to the minute. */
  lastUsedAtMs: number | null;
}

/** Who is calling, as the gateway learned it from `authenticate`. */
export interface Principal {
  token: TokenId;
  tenant: string;
  user: string;
  scopes: Scope[];
  /** A running job calls: it sees only its own line of jobs, and what it submits is its child. */
  job?: JobId | undefined;
  /** Who an issuer says it is; absent for tokens of our own. */
  identity?: { issuer: string; subject: string } | undefined;
}

/** Somebody whom an issuer vouches for, before it is known whether he may still come in. */
export interface Identity {
  issuer: string;
  subject: string;
  tenant: string;
  user: string;
  /** Roles and scopes, see roles.ts. */
  roles: string[];
  expiresAtMs: number;
}
