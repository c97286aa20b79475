/** Opens a blob store on S3, and clears away what uploads that broke off have left there. */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { BlobSettings } from '../../model/blobSettings.ts';
import type { BlobStore } from '../contract.ts';
import { S3_LIMITS } from './limits.ts';
import { removeUnfinished } from './listing.ts';
import { S3BlobStore } from './s3BlobStore.ts';

export function openS3BlobStore(
  settings: BlobSettings,
  { clock, log }: { clock: Clock; log: Log },
): BlobStore {
  const store = new S3BlobStore({ ...settings, clock });
  // Not awaited: a bucket that is away for a while must not keep a controller from starting.
  void sweep(store, settings.prefix, clock.now() - S3_LIMITS.leftoverMs, log);
  return store;
}

async function sweep(
  { client }: S3BlobStore,
  prefix: string,
  beforeMs: number,
  log: Log,
): Promise<void> {
  try {
    const removed = await removeUnfinished(client, prefix, beforeMs);
    if (removed > 0) log.info({ removed }, 'unfinished uploads were removed from the bucket');
  } catch (error) {
    log.warn({ err: error }, 'the bucket of the blob store cannot be used now');
  }
}
