/** Tenants and users: who may come in, and what ends when somebody leaves. */
import type { Tenant, User } from '../model/tenant.ts';
import { cancel } from './cancel.ts';
import { mark } from './changes.ts';
import { DONE, type Result } from './mutations.ts';
import type { RemoveUser, SetTenant, SetUser } from './peopleMutations.ts';
import type { State } from './state.ts';
import { revokeToken } from './tokens.ts';

export class Tenants {
  readonly tenants = new Map<string, Tenant>();
  readonly #users = new Map<string, User>();

  constructor(tenants: readonly Tenant[], users: readonly User[]) {
    for (const tenant of tenants) this.tenants.set(tenant.name, tenant);
    for (const user of users) this.addUser(user);
  }

  user(tenant: string, name: string): User | undefined {
    return this.#users.get(keyOf(tenant, name));
  }

  *usersOf(tenant: string): Generator<User> {
    for (const user of this.#users.values()) if (user.tenant === tenant) yield user;
  }

  addUser(user: User): void {
    this.#users.set(keyOf(user.tenant, user.name), user);
  }

  /** Neither is the tenant suspended nor has the user left it. */
  mayCome(tenant: string, user: string): boolean {
    if (this.tenants.get(tenant)?.suspended) return false;
    return (this.user(tenant, user)?.leftAtMs ?? null) === null;
  }
}

function keyOf(tenant: string, user: string): string {
  return `${tenant}\n${user}`;
}

export function setTenant(state: State, mutation: SetTenant, nowMs: number): Result {
  const { name, suspended, note, by } = mutation;
  const known = state.tenants.tenants.get(name);
  if (known?.suspended === suspended && known.note === note) return DONE;
  if (known) {
    Object.assign(known, { suspended, note, version: known.version + 1 });
    mark(state.changes.tenants, known);
  } else {
    const fresh: Tenant = { name, suspended, note, createdAtMs: nowMs, version: 1 };
    state.tenants.tenants.set(name, fresh);
    state.changes.tenants.set(fresh, 'insert');
  }
  state.note(nowMs, { kind: 'tenant.set', tenant: name, data: { suspended, note, by } });
  return DONE;
}

/** Whoever had left is back with this. */
export function setUser(state: State, mutation: SetUser, nowMs: number): Result {
  const { tenant, user: name, roles, by } = mutation;
  const user = touched(state, tenant, name);
  user.roles = roles;
  user.leftAtMs = null;
  const data = { user: name, roles: roles.join(' '), by };
  state.note(nowMs, { kind: 'user.set', tenant, data });
  return DONE;
}

/** In one mutation: from here on nobody can come in by a token of his that was overlooked. */
export function removeUser(state: State, mutation: RemoveUser, nowMs: number): Result {
  const { tenant, user: name, jobs, by } = mutation;
  const user = touched(state, tenant, name);
  user.leftAtMs ??= nowMs;
  let tokens = 0;
  for (const token of state.tokens.values()) {
    if (token.tenant !== tenant || token.user !== name || token.kind !== 'user') continue;
    if (token.revokedAtMs !== null) continue;
    revokeToken(state, { kind: 'revoke-token', token: token.id, by }, nowMs);
    tokens++;
  }
  let cancelled = 0;
  for (const { job } of jobs === 'cancel' ? [...state.jobs.values()] : []) {
    if (job.tenant !== tenant || job.owner !== name || job.cancelRequestedAtMs !== null) continue;
    cancel(state, { kind: 'cancel', job: job.id, by }, nowMs);
    cancelled++;
  }
  const data = { user: name, tokens, jobs: cancelled, by };
  state.note(nowMs, { kind: 'user.left', tenant, data });
  return DONE;
}

/** The user's row, made where there is none, marked as changed. */
function touched(state: State, tenant: string, name: string): User {
  const known = state.tenants.user(tenant, name);
  if (known) {
    known.version++;
    mark(state.changes.users, known);
    return known;
  }
  const fresh: User = { tenant, name, roles: [], leftAtMs: null, version: 1 };
  state.tenants.addUser(fresh);
  state.changes.users.set(fresh, 'insert');
  return fresh;
}
