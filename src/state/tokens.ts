/** Tokens appear and are revoked. */
import type { TokenId } from '../model/ids.ts';
import { DONE, missing, type CreateToken, type Result, type RevokeToken } from './mutations.ts';
import type { State } from './state.ts';

export function createToken(state: State, mutation: CreateToken, nowMs: number): Result {
  const id = state.mint('t') as TokenId;
  const token = { ...mutation.token, id, createdAtMs: nowMs, revokedAtMs: null };
  state.addToken(token);
  state.note(nowMs, {
    kind: 'token.created',
    tenant: token.tenant,
    data: { token: id, tokenKind: token.kind, user: token.user },
  });
  return { kind: 'token', id };
}

export function revokeToken(state: State, mutation: RevokeToken, nowMs: number): Result {
  const token = state.tokens.get(mutation.token);
  if (!token) return missing(`token ${mutation.token}`);
  if (token.revokedAtMs !== null) return DONE;
  token.revokedAtMs = nowMs;
  state.dropToken(token);
  state.note(nowMs, { kind: 'token.revoked', tenant: token.tenant, data: { token: token.id } });
  return DONE;
}
