/** What lies under a prefix of the bucket, page by page. */
import { DroverError } from '../../lib/errors.ts';
import type { S3Client } from './client.ts';
import { elements, textOf } from '../../lib/s3Xml.ts';

export interface ListedObject {
  /** What follows the last slash of its key. */
  name: string;
  size: number;
  modifiedAtMs: number;
}

export async function* listObjects(
  client: S3Client,
  prefix: string,
): AsyncGenerator<ListedObject, undefined> {
  let token = '';
  do {
    const text = await getList(client, {
      'list-type': '2',
      prefix,
      ...(token ? { 'continuation-token': token } : {}),
    });
    for (const entry of elements(text, 'Contents')) {
      yield {
        name: lastPart(textOf(entry, 'Key')),
        size: Number(textOf(entry, 'Size')),
        modifiedAtMs: Date.parse(textOf(entry, 'LastModified')),
      };
    }
    token = textOf(text, 'NextContinuationToken');
  } while (token);
}

/** Removes the parts of uploads that were begun before then and never finished. */
export async function removeUnfinished(
  client: S3Client,
  prefix: string,
  beforeMs: number,
): Promise<number> {
  // One page is enough for a start; the next start sees the rest.
  const text = await getList(client, { uploads: '', prefix });
  let removed = 0;
  for (const entry of elements(text, 'Upload')) {
    if (!(Date.parse(textOf(entry, 'Initiated')) < beforeMs)) continue;
    const query = { uploadId: textOf(entry, 'UploadId') };
    await client.call({ method: 'DELETE', key: textOf(entry, 'Key'), query });
    removed++;
  }
  return removed;
}

async function getList(client: S3Client, query: Record<string, string>): Promise<string> {
  const { status, text } = await client.call({ method: 'GET', key: '', query });
  if (status !== 404) return text;
  // Taken for an empty list, this would let a collector believe that nothing is kept here.
  const code = textOf(text, 'Code') || 'status 404';
  throw new DroverError('UNAVAILABLE', `The bucket of the blob store is gone (${code})`, {
    hint: 'See blobs.bucket.',
  });
}

function lastPart(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}
