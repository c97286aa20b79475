/** Where blobs are kept, as an operator configures it. */
import { z } from 'zod';

const TIB = 1024 ** 4;
const text = z.string().max(4096);

export const blobSettings = z
  .strictObject({
    kind: z.enum(['files', 's3']).default('files'),
    folder: text.default(''),
    endpoint: text.refine(isEndpoint, 'is no http:// or https:// address').default(''),
    region: z.string().min(1).max(63).default('us-east-1'),
    bucket: text.regex(/^[a-zA-Z0-9._-]*$/).default(''),
    /** Characters that need no thought in URLs. */
    prefix: text.refine(isPrefix, 'is like lab/drover, with no slash around').default(''),
    pathStyle: z.boolean().default(false),
    accessKeyId: text.default(''),
    secretAccessKey: text.default(''),
    secretAccessKeyFile: text.default(''),
    /** S3 takes no larger object. */
    maxBlobBytes: z
      .int()
      .min(1)
      .max(5 * TIB)
      .default(TIB),
    /** 0: no limit. */
    tenantQuotaBytes: z.int().min(0).default(0),
  })
  .prefault({});

export type BlobSettings = z.output<typeof blobSettings>;

export function checkBlobs(
  blobs: BlobSettings,
  fail: (setting: string, message: string) => void,
): void {
  const { kind, folder, bucket, accessKeyId, secretAccessKey, secretAccessKeyFile } = blobs;
  if (kind === 'files') {
    if (bucket) fail('blobs.kind', 'blobs.bucket is for s3; say kind: s3 to use it');
    return;
  }
  if (folder) fail('blobs.folder', 'is for files; with s3 nothing is kept in a folder');
  if (!bucket) fail('blobs.bucket', 'is needed where blobs.kind is s3');
  if (!accessKeyId) fail('blobs.accessKeyId', 'is needed where blobs.kind is s3');
  if (!secretAccessKey === !secretAccessKeyFile) {
    const message = 's3 needs the secret as DROVER_BLOBS_SECRET_ACCESS_KEY or in a file, not both';
    fail('blobs.secretAccessKeyFile', message);
  }
}

function isEndpoint(value: string): boolean {
  if (value === '') return true;
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '';
}

function isPrefix(value: string): boolean {
  return value === '' || /^[\w.-]+(\/[\w.-]+)*$/.test(value);
}
