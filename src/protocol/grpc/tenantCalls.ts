/** The client's half of tenants, users and people whom an issuer vouches for. */
import type { Coordinator } from '../coordinator.ts';
import type { Connection } from './connection.ts';
import { principalFromWire } from './fleetMessages.ts';
import { tenantFromWire, userFromWire } from './tenantMessages.ts';
import { toBigint } from './wire.ts';

type TenantCall = 'admit' | 'listTenants' | 'setTenant' | 'listUsers' | 'setUser' | 'removeUser';

export function tenantCalls({ coordinator, call, by }: Connection): Pick<Coordinator, TenantCall> {
  return {
    async admit({ expiresAtMs, ...identity }) {
      const request = { identity: { ...identity, expiresAtMs: toBigint(expiresAtMs) } };
      return call(
        {},
        (options) => coordinator.admit(request, options),
        ({ principal }) => principal && principalFromWire(principal),
      );
    },
    listTenants: (who) =>
      call(
        by(who),
        (options) => coordinator.listTenants({}, options),
        ({ tenants }) => tenants.map(tenantFromWire),
      ),
    setTenant: (who, name, input) =>
      call(
        by(who),
        (options) => coordinator.setTenant({ name, ...input }, options),
        ({ tenant }) => tenantFromWire(tenant),
      ),
    listUsers: (who) =>
      call(
        by(who),
        (options) => coordinator.listUsers({}, options),
        ({ users }) => users.map(userFromWire),
      ),
    setUser: (who, user, { roles }) =>
      call(
        by(who),
        (options) => coordinator.setUser({ user, roles }, options),
        (response) => userFromWire(response.user),
      ),
    removeUser: (who, user, jobs) =>
      call(
        by(who),
        (options) =>
          coordinator.removeUser({ user, cancelJobs: jobs && jobs === 'cancel' }, options),
        (response) => userFromWire(response.user),
      ),
  };
}
