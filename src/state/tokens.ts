/** Tokens appear and are revoked. */
import type { AttemptUid, TokenId } from '../model/ids.ts';
import type { Token } from '../model/token.ts';
import { mark } from './changes.ts';
import { DONE, missing, type CreateToken, type Result, type RevokeToken } from './mutations.ts';
import type { State } from './state.ts';

/** A token that is new or rebuilt. */
export function adoptToken(state: State, token: Token): void {
  state.tokens.set(token.id, token);
  if (token.kind === 'join') state.pools.add(token.pool);
  if (token.revokedAtMs !== null) return;
  state.tokensByHash.set(token.hash, token);
  const { attempt } = token;
  if (attempt === null) return;
  state.attemptTokens.set(attempt, [...(state.attemptTokens.get(attempt) ?? []), token]);
}

export function createToken(state: State, mutation: CreateToken, nowMs: number): Result {
  const { attempt = null } = mutation;
  if (attempt !== null && !state.attempts.has(attempt)) return missing(`attempt ${attempt}`);
  const id = state.mint('t') as TokenId;
  const token = { ...mutation.token, id, attempt, createdAtMs: nowMs, revokedAtMs: null };
  adoptToken(state, token);
  state.changes.tokens.set(token, 'insert');
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
  state.tokensByHash.delete(token.hash);
  mark(state.changes.tokens, token);
  state.note(nowMs, { kind: 'token.revoked', tenant: token.tenant, data: { token: token.id } });
  return DONE;
}

/** An attempt has ended: what it was given to call with is good no more. */
export function revokeTokensOf(state: State, attempt: AttemptUid, nowMs: number): void {
  for (const token of state.attemptTokens.get(attempt) ?? []) {
    revokeToken(state, { kind: 'revoke-token', token: token.id }, nowMs);
  }
  state.attemptTokens.delete(attempt);
}
