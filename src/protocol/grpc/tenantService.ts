/** The tenants' half of drover.v1.Coordinator. */
import type { ServiceImpl } from '@connectrpc/connect';
import type { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { tenantInput, tenantName, userInput, userName } from '../tenants.ts';
import { principalOf } from './caller.ts';
import { parse } from './check.ts';
import type { ServiceOptions } from './coordinatorService.ts';
import { principalToWire } from './fleetMessages.ts';
import { tenantToWire, userToWire } from './tenantMessages.ts';
import { need, toNumber } from './wire.ts';

type TenantMethod = 'admit' | 'listTenants' | 'setTenant' | 'listUsers' | 'setUser' | 'removeUser';

export function tenantMethods({
  coordinator,
}: ServiceOptions): Pick<ServiceImpl<typeof CoordinatorService>, TenantMethod> {
  return {
    async admit(request) {
      const { issuer, subject, tenant, user, roles, expiresAtMs } = need(
        request.identity,
        'identity',
      );
      const principal = await coordinator.admit({
        ...{ issuer, subject, tenant, user, roles },
        expiresAtMs: toNumber(expiresAtMs),
      });
      return { principal: principal && principalToWire(principal) };
    },
    async listTenants(_request, context) {
      const views = await coordinator.listTenants(principalOf(context));
      return { tenants: views.map(tenantToWire) };
    },
    async setTenant({ name, suspended, note }, context) {
      const input = parse(tenantInput, { suspended, note });
      const who = principalOf(context);
      const view = await coordinator.setTenant(who, parse(tenantName, name), input);
      return { tenant: tenantToWire(view) };
    },
    async listUsers(_request, context) {
      const views = await coordinator.listUsers(principalOf(context));
      return { users: views.map(userToWire) };
    },
    async setUser({ user, roles }, context) {
      const input = parse(userInput, { roles });
      const view = await coordinator.setUser(principalOf(context), parse(userName, user), input);
      return { user: userToWire(view) };
    },
    async removeUser({ user, cancelJobs }, context) {
      const jobs = cancelJobs === undefined ? undefined : cancelJobs ? 'cancel' : 'keep';
      const view = await coordinator.removeUser(principalOf(context), parse(userName, user), jobs);
      return { user: userToWire(view) };
    },
  };
}
