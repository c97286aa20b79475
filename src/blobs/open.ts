/** Opens the blob store that the settings name. */
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { BlobSettings } from '../model/blobSettings.ts';
import type { BlobStore } from './contract.ts';
import { openFileBlobStore } from './files/fileBlobStore.ts';

export async function openBlobStore(
  settings: BlobSettings,
  { clock, log }: { clock: Clock; log: Log },
): Promise<BlobStore> {
  if (settings.kind === 'files') return openFileBlobStore({ folder: settings.folder, clock });
  // Loaded where it is used: it is a tenth of what a controller has to load.
  const { openS3BlobStore } = await import('./s3/open.ts');
  return openS3BlobStore(settings, { clock, log });
}
