/** What a worker demands of the work it takes: its pool's terms and its own, both. */
import type { WorkerTerms } from '../../model/placement.ts';

/** Matches no tenant: names are never empty. */
const NOBODY = [''];

export function bothTerms(a: WorkerTerms, b: WorkerTerms): WorkerTerms {
  return {
    tenants: bothTenants(a.tenants, b.tenants),
    interruptibleOnly: a.interruptibleOnly || b.interruptibleOnly,
    marketplace: a.marketplace || b.marketplace,
  };
}

function bothTenants(a: string[], b: string[]): string[] {
  if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a;
  const common = a.filter((tenant) => b.includes(tenant));
  return common.length > 0 ? common : NOBODY;
}
