/** Who uses the simulated cluster: two tenants beside the operator's own, one with two users. */
import { SCOPES, type Scope } from '../../src/model/token.ts';
import type { Token } from '../../src/model/token.ts';
import { hashSecret } from '../../src/control/secrets.ts';
import type { Controller } from '../../src/control/controller.ts';

export interface Person {
  tenant: string;
  user: string;
  secret: string;
}

export const ADMIN: Person = { tenant: 'default', user: 'admin', secret: 'drv_sim' };
export const PEOPLE: readonly Person[] = [
  { tenant: 'north', user: 'ann', secret: 'drv_ann' },
  { tenant: 'north', user: 'bob', secret: 'drv_bob' },
  { tenant: 'south', user: 'cyd', secret: 'drv_cyd' },
];
export const TENANTS = ['default', 'north', 'south'] as const;

/** By pool. */
export const JOIN_SECRETS: Record<string, string> = { default: 'drj_sim', rented: 'drj_rented' };

/** Stands in everything a tenant writes, and must never be in what another one reads. */
export function canaryOf(tenant: string): string {
  return `canary-${tenant}`;
}

/** All that concerns no tenant but his own. */
const OWN_SCOPES: Scope[] = SCOPES.filter((scope) => !/^(tenants|fleet):manage$/.test(scope));

/** What an operator would have done once: everybody has a token. */
export async function admitEverybody(controller: Controller): Promise<void> {
  await controller.ensureTokens({ admin: ADMIN.secret, join: JOIN_SECRETS['default'] ?? '' });
  for (const { tenant, user, secret } of PEOPLE) {
    admit(controller, secret, { kind: 'user', tenant, user, scopes: OWN_SCOPES, pool: '' });
  }
  const rented = { tenant: 'default', user: 'admin', scopes: [], pool: 'rented' };
  admit(controller, JOIN_SECRETS['rented'] ?? '', { kind: 'join', ...rented });
  await controller.durable();
}

function admit(
  { state, mutate }: Controller,
  secret: string,
  who: Pick<Token, 'kind' | 'tenant' | 'user' | 'scopes' | 'pool'>,
): void {
  const hash = hashSecret(secret);
  if (state.tokensByHash.has(hash)) return;
  const token = { ...who, hash, name: who.user, maxLiveWorkers: 0, expiresAtMs: null };
  mutate({ kind: 'create-token', by: 'ann', token });
}
