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
}

/** Who is calling, as the gateway learned it from `authenticate`. */
export interface Principal {
  token: TokenId;
  tenant: string;
  user: string;
  scopes: Scope[];
  /** A running job calls: it sees only its own line of jobs, and what it submits is its child. */
  job?: JobId | undefined;
}
