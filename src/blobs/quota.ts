/** How much a tenant may keep: summed up now and then, in between what is put is added. */
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { BlobStore } from './contract.ts';
import { BLOB_LIMITS } from './limits.ts';

interface Use {
  bytes: number;
  atMs: number;
}

export interface BlobQuota {
  /** OVER_QUOTA where it would be too much. Call what it returns when the blob was not kept. */
  reserve(tenant: string, size: number): Promise<() => void>;
  /** Something was removed: the next question counts anew. */
  forget(tenant: string): void;
}

export function createBlobQuota(
  store: BlobStore,
  { tenantQuotaBytes, clock }: { tenantQuotaBytes: number; clock: Clock },
): BlobQuota {
  const known = new Map<string, Promise<Use>>();
  const measure = async (tenant: string): Promise<Use> => {
    const use = { bytes: 0, atMs: clock.now() };
    for await (const { size } of store.list(tenant)) use.bytes += size;
    return use;
  };
  const useOf = async (tenant: string): Promise<Use> => {
    const last = await known.get(tenant);
    if (last && clock.now() - last.atMs < BLOB_LIMITS.quotaMs) return last;
    const measuring = measure(tenant);
    known.set(tenant, measuring);
    // A failed look is nobody's answer.
    measuring.catch(() => known.delete(tenant));
    return measuring;
  };
  return {
    async reserve(tenant, size) {
      if (tenantQuotaBytes === 0) return () => {};
      const use = await useOf(tenant);
      if (use.bytes + size > tenantQuotaBytes) {
        const detail = `${size} bytes more than the ${use.bytes} kept are over the quota of blobs`;
        const hint = `The tenant may keep ${tenantQuotaBytes} bytes: remove some, or ask for more.`;
        throw new DroverError('OVER_QUOTA', detail, { hint });
      }
      use.bytes += size;
      return () => void (use.bytes -= size);
    },
    forget: (tenant) => void known.delete(tenant),
  };
}
