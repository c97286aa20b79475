/** Rows of tenants, users and the heads of audit chains. */
import type { AuditHead } from '../model/auditChain.ts';
import type { Tenant, User } from '../model/tenant.ts';
import type { Changes } from '../state/changes.ts';
import type { Value, WriteBatch } from './contract.ts';
import type { TenantRow, UserRow } from './database.ts';
import { nothing, split } from './rows.ts';

export function encodePeople(changes: Changes, tables: WriteBatch['tables']): void {
  if (changes.auditHeads.size > 0) {
    tables.audit_heads = split(changes.auditHeads, headKey, nothing, headMutable);
  }
  if (changes.tenants.size > 0) {
    tables.tenants = split(changes.tenants, tenantKey, tenantFixed, tenantMutable);
  }
  if (changes.users.size > 0) {
    tables.users = split(changes.users, userKey, nothing, userMutable);
  }
}

function headKey(to: Value[], { tenant }: AuditHead): void {
  to.push(tenant);
}

function headMutable(to: Value[], { hash, entries }: AuditHead): void {
  to.push(hash, entries);
}

function tenantKey(to: Value[], { name }: Tenant): void {
  to.push(name);
}

function tenantFixed(to: Value[], { createdAtMs }: Tenant): void {
  to.push(createdAtMs);
}

function tenantMutable(to: Value[], { suspended, note, version }: Tenant): void {
  to.push(suspended ? 1 : 0, note, version);
}

function userKey(to: Value[], { tenant, name }: User): void {
  to.push(tenant, name);
}

function userMutable(to: Value[], { roles, leftAtMs, version }: User): void {
  to.push(JSON.stringify(roles), leftAtMs, version);
}

export function decodeTenant(row: TenantRow): Tenant {
  const { name, note, version } = row;
  return { name, suspended: row.suspended === 1, note, createdAtMs: row.created_at_ms, version };
}

export function decodeUser(row: UserRow): User {
  const { tenant, name, version } = row;
  return {
    tenant,
    name,
    roles: JSON.parse(row.roles) as string[],
    leftAtMs: row.left_at_ms,
    version,
  };
}
