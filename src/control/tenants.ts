/** Tenants and users: who there is, who may come in, and who leaves. */
import { DroverError } from '../lib/errors.ts';
import { ROLE_NAMES, scopesOf } from '../model/roles.ts';
import { SCOPES, type Principal } from '../model/token.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { PolicySource } from '../protocol/policy.ts';
import type { TenantView, UserView } from '../protocol/tenants.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import type { Mutate } from './mutate.ts';
import { refuseMoreThanOwn } from './tokens.ts';

export interface TenantsOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  policy: PolicySource;
}

type TenantCalls = Pick<
  Coordinator,
  'listTenants' | 'setTenant' | 'listUsers' | 'setUser' | 'removeUser'
>;

export function createTenants({ state, mutate, committer, policy }: TenantsOptions): TenantCalls {
  const userOf = async (who: Principal, name: string): Promise<UserView> => {
    const view = usersOf(state, who.tenant).get(name) ?? nobody(who.tenant, name);
    await committer.durable();
    return view;
  };
  return {
    async listTenants(who) {
      const all = who.scopes.includes('tenants:manage');
      const names = all ? namesOf(state) : new Set([who.tenant]);
      const views = Array.from(names, (name) => tenantView(state, name));
      await committer.durable();
      return views.toSorted(byName);
    },

    async setTenant(who, name, input) {
      mutate({ kind: 'set-tenant', name, ...input, by: who.user });
      const view = tenantView(state, name);
      await committer.durable();
      return view;
    },

    async listUsers(who) {
      const views = [...usersOf(state, who.tenant).values()];
      await committer.durable();
      return views.toSorted(byName);
    },

    async setUser(who, user, { roles }) {
      refuseUnknown(roles);
      refuseMoreThanOwn(who, who.tenant, scopesOf(roles));
      mutate({ kind: 'set-user', tenant: who.tenant, user, roles, by: who.user });
      return userOf(who, user);
    },

    async removeUser(who, user, asked) {
      const jobs = asked ?? policy.current()?.leaving.jobs ?? 'keep';
      mutate({ kind: 'remove-user', tenant: who.tenant, user, jobs, by: who.user });
      return userOf(who, user);
    },
  };
}

function refuseUnknown(roles: readonly string[]): void {
  const unknown = roles.find((role) => scopesOf([role]).length === 0);
  if (unknown === undefined) return;
  throw new DroverError('INVALID_ARGUMENT', `there is no role or scope "${unknown}"`, {
    hint: `roles are ${ROLE_NAMES.join(', ')}; scopes are ${SCOPES.join(', ')}`,
  });
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}

/** Who was said something about, has a token, or has something that lives. */
function namesOf(state: State): Set<string> {
  const names = new Set(state.tenants.tenants.keys());
  for (const { tenant } of state.tokens.values()) names.add(tenant);
  for (const { job } of state.jobs.values()) names.add(job.tenant);
  return names;
}

function tenantView(state: State, name: string): TenantView {
  const known = state.tenants.tenants.get(name);
  const users = [...usersOf(state, name).values()];
  return {
    name,
    suspended: known?.suspended ?? false,
    note: known?.note ?? '',
    createdAtMs: known?.createdAtMs ?? null,
    users: users.length,
    liveJobs: users.reduce((sum, user) => sum + user.liveJobs, 0),
  };
}

function usersOf(state: State, tenant: string): Map<string, UserView> {
  const views = new Map<string, UserView>();
  const of = (name: string): UserView => {
    const view = views.get(name) ?? nobody(tenant, name);
    views.set(name, view);
    return view;
  };
  for (const { name, roles, leftAtMs } of state.tenants.usersOf(tenant)) {
    Object.assign(of(name), { roles, leftAtMs });
  }
  for (const token of state.tokens.values()) {
    if (token.tenant !== tenant || token.kind !== 'user' || token.revokedAtMs !== null) continue;
    of(token.user).tokens++;
  }
  for (const { job } of state.jobs.values()) {
    if (job.tenant === tenant && job.endedAtMs === null) of(job.owner).liveJobs++;
  }
  return views;
}

function nobody(tenant: string, name: string): UserView {
  return { tenant, name, roles: [], leftAtMs: null, tokens: 0, liveJobs: 0 };
}
