/** What a worker demands of the work it takes: its pool's terms and its own, both. */
import type { WorkerTerms } from '../../model/placement.ts';

/** Matches no tenant: names are never empty. */
const NOBODY = [''];

export function bothTerms(a: WorkerTerms, b: WorkerTerms): WorkerTerms {
  return {
    tenants: bothNames(a.tenants, b.tenants),
    users: bothNames(a.users, b.users),
    interruptibleOnly: a.interruptibleOnly || b.interruptibleOnly,
    marketplace: a.marketplace || b.marketplace,
  };
}

function bothNames(a: string[], b: string[]): string[] {
  if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a;
  const common = a.filter((name) => b.includes(name));
  return common.length > 0 ? common : NOBODY;
}
