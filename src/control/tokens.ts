/** Who is calling, and the tokens by which that is known. */
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import { parseAttemptUid, type TokenId } from '../model/ids.ts';
import { scopesOf } from '../model/roles.ts';
import type { Identity, Principal, Scope, Token } from '../model/token.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import { cutPage, decodeText } from './cursors.ts';
import type { Mutate } from './mutate.ts';
import { hashSecret, newSecret } from './secrets.ts';
import { tokenView } from './views.ts';

export interface TokensOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  clock: Clock;
  random: Random;
}

/** The time of a token's last use is written again when it is older than this. */
const USED_MS = 60_000;

type TokenCalls = Pick<
  Coordinator,
  'authenticate' | 'admit' | 'listTokens' | 'createToken' | 'revokeToken'
>;

export function createTokens(options: TokensOptions): TokenCalls {
  const { state, mutate, committer, clock, random } = options;

  function use(token: Token): void {
    const atMs = clock.now();
    if (atMs - (token.lastUsedAtMs ?? 0) < USED_MS) return;
    mutate({ kind: 'use-tokens', tokens: [{ token: token.id, atMs }] });
  }

  return {
    async authenticate(secret) {
      const token = state.tokensByHash.get(hashSecret(secret));
      if (!token || token.kind === 'join') return undefined;
      if (token.expiresAtMs !== null && token.expiresAtMs <= clock.now()) return undefined;
      const { id, tenant, user, scopes, attempt } = token;
      if (!state.tenants.mayCome(tenant, user)) return undefined;
      use(token);
      await committer.durable();
      const job = attempt === null ? undefined : parseAttemptUid(attempt)?.job;
      return { token: id, tenant, user, scopes, ...(job !== undefined && { job }) };
    },

    async admit(identity) {
      if (identity.expiresAtMs <= clock.now()) return undefined;
      const principal = principalOf(state, identity);
      await committer.durable();
      return principal;
    },

    async listTokens(who, page) {
      const after = decodeText(page.cursor) ?? '';
      const items = [...state.tokens.values()]
        .filter((token) => token.tenant === who.tenant && token.id > after)
        .toSorted((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, page.limit + 1)
        .map(tokenView);
      await committer.durable();
      return cutPage(items, page.limit, (last) => [last.id]);
    },

    async createToken(who, request) {
      const { expiresInMs, kind, name, pool, maxLiveWorkers, tenant = who.tenant } = request;
      const scopes = scopesOf([...request.roles, ...request.scopes]);
      refuseMoreThanOwn(who, tenant, scopes);
      if (kind === 'join') refuseStrangers(who);
      const user = request.user ?? who.user;
      if (!state.tenants.mayCome(tenant, user)) throw gone(tenant, user);
      const secret = newSecret(kind === 'join' ? 'drj' : 'drv', random);
      const result = mutate({
        kind: 'create-token',
        by: who.user,
        token: {
          kind,
          name,
          tenant,
          user,
          scopes: kind === 'join' ? [] : scopes,
          hash: hashSecret(secret),
          pool,
          maxLiveWorkers,
          expiresAtMs: expiresInMs === undefined ? null : clock.now() + expiresInMs,
        },
      });
      const token = result.kind === 'token' ? state.tokens.get(result.id) : undefined;
      if (!token) throw new Error(`creating a token gave ${result.kind}`);
      await committer.durable();
      return { ...tokenView(token), secret };
    },

    async revokeToken(who, id) {
      const token = state.tokens.get(id as TokenId);
      if (!token || !mayRevoke(who, token)) throw noToken(id);
      mutate({ kind: 'revoke-token', token: token.id, by: who.user });
      await committer.durable();
      return tokenView(token);
    },
  };
}

function principalOf(state: State, identity: Identity): Principal | undefined {
  const { issuer, subject, tenant, user, roles } = identity;
  if (!state.tenants.mayCome(tenant, user)) return undefined;
  const own = state.tenants.user(tenant, user)?.roles ?? [];
  const scopes = scopesOf([...roles, ...own]);
  const token = `${issuer} ${subject}` as TokenId;
  return { token, tenant, user, scopes, identity: { issuer, subject } };
}

/** Nobody hands out what he does not have, and in his own tenant only. */
export function refuseMoreThanOwn(who: Principal, tenant: string, scopes: readonly Scope[]): void {
  if (tenant !== who.tenant && !who.scopes.includes('tenants:manage')) {
    throw new DroverError('PERMISSION_DENIED', 'a token for another tenant needs tenants:manage');
  }
  const more = scopes.filter((scope) => !who.scopes.includes(scope));
  if (more.length === 0) return;
  throw new DroverError('PERMISSION_DENIED', `your token lacks ${more.join(', ')} itself`, {
    hint: `you may give out: ${who.scopes.join(', ')}`,
  });
}

/** Whoever brings a machine runs other tenants' jobs on it, and sees what they are made of. */
function refuseStrangers({ scopes }: Principal): void {
  if (scopes.includes('fleet:manage')) return;
  throw new DroverError('PERMISSION_DENIED', 'a join token needs fleet:manage', {
    hint: 'ask an operator of the fleet for one',
  });
}

function mayRevoke(who: Principal, token: Token): boolean {
  return token.tenant === who.tenant || who.scopes.includes('tenants:manage');
}

function gone(tenant: string, user: string): DroverError {
  return new DroverError('CONFLICT', `${user} has left ${tenant}, or ${tenant} is suspended`, {
    hint: `let him in again with: drover users set ${user}`,
  });
}

function noToken(id: string): DroverError {
  return new DroverError('NOT_FOUND', `there is no token ${id.slice(0, 100)}`, {
    hint: 'list them with: drover tokens',
  });
}
