/** How a tenant is called in folders and keys. */
import { hash } from 'node:crypto';

/** Short, one case, and no name a file system or a URL treats in its own way. */
const PLAIN = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** Readable where the name allows it; `~` begins no plain name, so no two tenants share one. */
export function tenantFolder(tenant: string): string {
  return PLAIN.test(tenant) ? tenant : `~${hash('sha256', tenant, 'hex')}`;
}
