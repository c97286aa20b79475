/** REST schemas of blobs. */
import { z } from 'zod';
import { BLOB_HASH, type BlobHash } from '../model/blob.ts';

/** Hashes one question may hold: some 350 KB of them. */
export const MISSING_HASHES = 5_000;

/** The header by which an agent says for which attempt, and so for which tenant, it calls. */
export const ATTEMPT_HEADER = 'drover-attempt';

const hash = z.string().regex(BLOB_HASH, 'is not sha256: and 64 hexadecimal digits, lower case');

/** Of the empty blob. */
export const EXAMPLE_HASH =
  'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

export const missingBlobs = z
  .strictObject({ hashes: z.array(hash).max(MISSING_HASHES) })
  .meta({ examples: [{ hashes: [EXAMPLE_HASH] }] });

export const missingView = z.object({ missing: z.array(hash) });

export const blobView = z.object({ hash, size: z.int(), created: z.boolean() });
export type BlobView = z.infer<typeof blobView> & { hash: BlobHash };
