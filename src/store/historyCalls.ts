/** History across threads: which tenant, which question, which arguments, as one flat call. */
import type { History, SystemHistory, TenantHistory } from './contract.ts';

export interface HistoryCalls {
  tenant(tenant: string, name: keyof TenantHistory, args: unknown[]): Promise<unknown>;
  system(name: keyof SystemHistory, args: unknown[]): Promise<unknown>;
  close(): Promise<void>;
}

type Question = (...args: unknown[]) => Promise<unknown>;

export function historyServer(history: History): HistoryCalls {
  return {
    tenant: (tenant, name, args) => (history.forTenant(tenant)[name] as Question)(...args),
    system: (name, args) => (history.system()[name] as Question)(...args),
    close: () => history.close(),
  };
}

export function historyClient(calls: HistoryCalls): History {
  const ask =
    (tenant: string, name: keyof TenantHistory): Question =>
    (...args) =>
      calls.tenant(tenant, name, args);
  const askSystem =
    (name: keyof SystemHistory): Question =>
    (...args) =>
      calls.system(name, args);
  const system = {
    attempt: askSystem('attempt'),
    workers: askSystem('workers'),
    instances: askSystem('instances'),
    usageDays: askSystem('usageDays'),
    ping: askSystem('ping'),
  } as SystemHistory;
  return {
    forTenant: (tenant) =>
      ({
        job: ask(tenant, 'job'),
        jobs: ask(tenant, 'jobs'),
        tasks: ask(tenant, 'tasks'),
        attempts: ask(tenant, 'attempts'),
        checkpoints: ask(tenant, 'checkpoints'),
        specsWithBlobs: ask(tenant, 'specsWithBlobs'),
        manifests: ask(tenant, 'manifests'),
        audited: ask(tenant, 'audited'),
        events: ask(tenant, 'events'),
      }) as TenantHistory,
    system: () => system,
    close: () => calls.close(),
  };
}
