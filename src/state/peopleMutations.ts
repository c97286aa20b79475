/** Mutations of who may come in: tokens, tenants and users. */
import type { AttemptUid, TokenId } from '../model/ids.ts';
import type { Token } from '../model/token.ts';

export interface CreateToken {
  kind: 'create-token';
  token: Omit<Token, 'id' | 'createdAtMs' | 'revokedAtMs' | 'lastUsedAtMs' | 'attempt'>;
  by: string;
  /** The attempt it is good for; absent: for whoever has it. */
  attempt?: AttemptUid;
}

export interface RevokeToken {
  kind: 'revoke-token';
  token: TokenId;
  by: string;
}

/** When tokens were last used, as far as it is newer than what is known. */
export interface UseTokens {
  kind: 'use-tokens';
  tokens: { token: TokenId; atMs: number }[];
}

export interface SetTenant {
  kind: 'set-tenant';
  name: string;
  suspended: boolean;
  note: string;
  by: string;
}

export interface SetUser {
  kind: 'set-user';
  tenant: string;
  user: string;
  roles: string[];
  by: string;
}

/** He leaves: his tokens end, and where that is asked for his jobs. */
export interface RemoveUser {
  kind: 'remove-user';
  tenant: string;
  user: string;
  jobs: 'keep' | 'cancel';
  by: string;
}

export type PeopleMutation =
  | CreateToken
  | RevokeToken
  | UseTokens
  | SetTenant
  | SetUser
  | RemoveUser;
