/** Tenants and users on the wire. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type * as wire from '../gen/drover/v1/tenant_pb.ts';
import type { TenantView, UserView } from '../tenants.ts';
import * as w from './wire.ts';

export function tenantToWire(view: TenantView): MessageInitShape<typeof wire.TenantSchema> {
  return { ...view, createdAtMs: w.toBigintOrNone(view.createdAtMs) };
}

export function tenantFromWire(sent: wire.Tenant | undefined): TenantView {
  const { name, suspended, note, createdAtMs, users, liveJobs } = w.need(sent, 'tenant');
  return { name, suspended, note, createdAtMs: w.toNumberOrNull(createdAtMs), users, liveJobs };
}

export function userToWire(view: UserView): MessageInitShape<typeof wire.UserSchema> {
  return { ...view, leftAtMs: w.toBigintOrNone(view.leftAtMs) };
}

export function userFromWire(sent: wire.User | undefined): UserView {
  const { tenant, name, roles, leftAtMs, tokens, liveJobs } = w.need(sent, 'user');
  return { tenant, name, roles, leftAtMs: w.toNumberOrNull(leftAtMs), tokens, liveJobs };
}
