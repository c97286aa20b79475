/** Tenants and users of the fakes: kept as they are set, and nothing depends on them. */
import type { TokenId } from '../model/ids.ts';
import { scopesOf } from '../model/roles.ts';
import type { Principal } from '../model/token.ts';
import type { Coordinator } from './coordinator.ts';
import { allow } from './fakeAnswers.ts';
import type { TenantView, UserView } from './tenants.ts';

type PeopleCalls = Pick<
  Coordinator,
  'admit' | 'listTenants' | 'setTenant' | 'listUsers' | 'setUser' | 'removeUser'
>;

export function fakePeople(): PeopleCalls {
  const tenants = new Map<string, TenantView>();
  const users = new Map<string, UserView>();
  const userOf = ({ tenant }: Principal, name: string): UserView => {
    const key = JSON.stringify([tenant, name]);
    const none = { tenant, name, roles: [], leftAtMs: null, tokens: 0, liveJobs: 0 };
    const view = users.get(key) ?? none;
    users.set(key, view);
    return view;
  };
  return {
    async admit({ issuer, subject, tenant, user, roles }) {
      const left = users.get(JSON.stringify([tenant, user]))?.leftAtMs ?? null;
      if (left !== null || tenants.get(tenant)?.suspended) return undefined;
      const token = `${issuer} ${subject}` as TokenId;
      return { token, tenant, user, scopes: scopesOf(roles), identity: { issuer, subject } };
    },
    async listTenants(who) {
      allow(who, 'jobs:read');
      const all = who.scopes.includes('tenants:manage');
      return [...tenants.values()].filter(({ name }) => all || name === who.tenant);
    },
    async setTenant(who, name, input) {
      allow(who, 'tenants:manage');
      const view = { name, ...input, createdAtMs: 0, users: 0, liveJobs: 0 };
      tenants.set(name, view);
      return view;
    },
    async listUsers(who) {
      allow(who, 'tokens:manage');
      return [...users.values()].filter(({ tenant }) => tenant === who.tenant);
    },
    async setUser(who, name, { roles }) {
      allow(who, 'tokens:manage');
      return Object.assign(userOf(who, name), { roles, leftAtMs: null });
    },
    async removeUser(who, name) {
      allow(who, 'tokens:manage');
      return Object.assign(userOf(who, name), { leftAtMs: 0 });
    },
  };
}
