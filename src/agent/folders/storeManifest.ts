/** A manifest as a blob. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { BlobHash } from '../../model/blob.ts';
import { manifestText, type Manifest } from '../../model/manifest.ts';
import { ApiError } from '../../protocol/client.ts';
import { missingBlobs, putBlob, type BlobClientOptions } from '../../protocol/blobClient.ts';

/** Last of all, when every blob it names is stored. `scratch` is a file of the caller's. */
export async function storeManifest(
  blobs: BlobClientOptions,
  manifest: Manifest,
  scratch: string,
  signal?: AbortSignal,
): Promise<BlobHash> {
  const text = manifestText(manifest);
  const hash: BlobHash = `sha256:${createHash('sha256').update(text).digest('hex')}`;
  const [missing] = await missingBlobs(blobs, [hash]);
  if (missing === undefined) return hash;
  writeFileSync(scratch, text, { mode: 0o600 });
  await putBlob(blobs, scratch, { hash, size: Buffer.byteLength(text), signal });
  return hash;
}

/** Refused for good: the same bytes would be refused again. */
export function isRefusal(error: unknown): error is ApiError {
  return (
    error instanceof ApiError && (error.code === 'OVER_QUOTA' || error.code === 'BODY_TOO_LARGE')
  );
}
