/** Tokens appear and are revoked. */
import type { AttemptUid, TokenId } from '../model/ids.ts';
import type { Token } from '../model/token.ts';
import { mark } from './changes.ts';
import { DONE, missing, type Result } from './mutations.ts';
import type { CreateToken, RevokeToken, UseTokens } from './peopleMutations.ts';
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
  const never = { revokedAtMs: null, lastUsedAtMs: null };
  const token: Token = { ...mutation.token, id, attempt, createdAtMs: nowMs, ...never };
  adoptToken(state, token);
  state.changes.tokens.set(token, 'insert');
  state.note(nowMs, {
    kind: 'token.created',
    tenant: token.tenant,
    data: { token: id, tokenKind: token.kind, user: token.user, by: mutation.by },
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
  const data = { token: token.id, by: mutation.by };
  state.note(nowMs, { kind: 'token.revoked', tenant: token.tenant, data });
  return DONE;
}

/** An attempt has ended: what it was given to call with is good no more. */
export function revokeTokensOf(state: State, attempt: AttemptUid, nowMs: number): void {
  for (const token of state.attemptTokens.get(attempt) ?? []) {
    const by = `the end of attempt ${attempt}`;
    revokeToken(state, { kind: 'revoke-token', token: token.id, by }, nowMs);
  }
  state.attemptTokens.delete(attempt);
}

export function useTokens(state: State, { tokens }: UseTokens): Result {
  for (const { token: id, atMs } of tokens) {
    const token = state.tokens.get(id);
    if (!token || (token.lastUsedAtMs ?? 0) >= atMs) continue;
    token.lastUsedAtMs = atMs;
    mark(state.changes.tokens, token);
  }
  return DONE;
}
