/** REST schemas of tenants and their users. */
import { z } from 'zod';
import { ROLE_NAMES } from '../model/roles.ts';
import { SCOPES } from '../model/token.ts';
import { clean } from './texts.ts';

export { LEAVING_JOBS, type LeavingJobs } from '../model/tenant.ts';

export const TENANT_LIMITS = { nameLength: 100, userLength: 200, noteLength: 1000, roles: 32 };

export const tenantName = clean(TENANT_LIMITS.nameLength).min(1);
export const userName = clean(TENANT_LIMITS.userLength).min(1);

export const tenantInput = z.strictObject({
  /** Nobody of it comes in while it is; what runs goes on. */
  suspended: z.boolean().default(false),
  note: clean(TENANT_LIMITS.noteLength).default(''),
});
export type TenantInput = z.infer<typeof tenantInput>;

export const tenantView = z
  .object({
    name: z.string(),
    suspended: z.boolean(),
    note: z.string(),
    /** Null: nobody ever said something about it. */
    createdAtMs: z.number().nullable(),
    users: z.int(),
    liveJobs: z.int(),
  })
  .meta({ id: 'Tenant' });
export type TenantView = z.infer<typeof tenantView>;

/** Also names that other systems had for them, so that the list is not for checking. */
const roleName = clean(100)
  .min(1)
  .meta({ enum: [...ROLE_NAMES, ...SCOPES] });

export const userInput = z.strictObject({
  /** Roles or scopes that he has beside those of his token or issuer. */
  roles: z.array(roleName).max(TENANT_LIMITS.roles).default([]),
});
export type UserInput = z.infer<typeof userInput>;

export const userView = z
  .object({
    tenant: z.string(),
    name: z.string(),
    roles: z.array(z.string()),
    /** Null: he has not left. */
    leftAtMs: z.number().nullable(),
    tokens: z.int(),
    liveJobs: z.int(),
  })
  .meta({ id: 'User' });
export type UserView = z.infer<typeof userView>;
