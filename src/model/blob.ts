/** A blob's name: the SHA-256 of its bytes, which is all there is to say about it. */
import { hash } from 'node:crypto';

/** `sha256:` and 64 lower-case hexadecimal digits. */
export type BlobHash = `sha256:${string}`;

export const BLOB_HASH = /^sha256:[0-9a-f]{64}$/;

export function isBlobHash(text: string): text is BlobHash {
  return BLOB_HASH.test(text);
}

export function blobHashOf(bytes: Uint8Array): BlobHash {
  return `sha256:${hash('sha256', bytes, 'hex')}`;
}

/** The 64 digits, as files and keys are called. */
export function hexOf(blob: BlobHash): string {
  return blob.slice('sha256:'.length);
}
