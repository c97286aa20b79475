/** A template's code on its way into the blob store of whoever submits the job. */
import type { BlobStore } from '../../blobs/contract.ts';
import type { BlobQuota } from '../../blobs/quota.ts';
import type { CodeFiles } from './templates.ts';

export type StoreCode = (tenant: string, code: CodeFiles) => Promise<void>;

/** Each tenant has its own copy, and pays for it with its quota, as if it had sent the files. */
export function codeStore({ store, quota }: { store: BlobStore; quota: BlobQuota }): StoreCode {
  return async (tenant, { blobs }) => {
    for (const hash of await store.missing(tenant, [...blobs.keys()])) {
      const bytes = blobs.get(hash)!;
      const giveBack = await quota.reserve(tenant, bytes.length);
      let created = false;
      try {
        ({ created } = await store.put(tenant, hash, bytes.length, [bytes]));
      } finally {
        if (!created) giveBack();
      }
    }
  };
}
