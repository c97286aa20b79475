/** A gateway with blobs as files in a fresh folder, for tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BlobStore } from '../../blobs/contract.ts';
import { openFileBlobStore } from '../../blobs/files/fileBlobStore.ts';
import { createBlobQuota } from '../../blobs/quota.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import type { MayUse } from '../auth/guard.ts';
import { GATEWAY_LIMITS } from '../limits.ts';
import { startTestGateway, type TestGateway } from '../testGateway.ts';
import { blobRoutes } from './blobs.ts';

export interface TestBlobGateway extends TestGateway {
  store: BlobStore;
  folder: string;
}

interface Options {
  maxBlobBytes?: number;
  tenantQuotaBytes?: number;
  transferSilenceMs?: number;
  requestReceiveMs?: number;
  mayUse?: MayUse;
  /** Put in place of single verbs of the store. */
  verbs?: Partial<BlobStore>;
}

export async function startBlobGateway(options: Options = {}): Promise<TestBlobGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-blobs-'));
  const files = await openFileBlobStore({ folder, clock });
  const store = Object.assign(files, options.verbs);
  const { maxBlobBytes = 1 << 30, tenantQuotaBytes = 0 } = options;
  const { transferSilenceMs = GATEWAY_LIMITS.transferSilenceMs } = options;
  const limits = { ...GATEWAY_LIMITS, transferSilenceMs };
  const quota = createBlobQuota(store, { tenantQuotaBytes, clock });
  const gateway = await startTestGateway(
    {},
    {
      extraRoutes: (app) => blobRoutes(app, { store, quota, maxBlobBytes, limits }),
      ...(options.mayUse ? { mayUse: options.mayUse } : {}),
      ...(options.requestReceiveMs === undefined
        ? {}
        : { limits: { requestReceiveMs: options.requestReceiveMs } }),
    },
  );
  const close = async (): Promise<void> => {
    await gateway.close();
    rmSync(folder, { recursive: true });
  };
  return { ...gateway, store, folder, close, [Symbol.asyncDispose]: close };
}
