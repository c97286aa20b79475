/** Failures that every blob store has. */
import { DroverError } from '../lib/errors.ts';
import type { BlobHash } from '../model/blob.ts';

export function noSuchBlob(hash: BlobHash): DroverError {
  return new DroverError('NOT_FOUND', `There is no blob ${hash}`, {
    hint: 'It was never put, or it was removed. Send it by PUT /v1/blobs/{hash}.',
  });
}
