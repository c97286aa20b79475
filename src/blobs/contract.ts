/**
 * The blob store: immutable bytes named by their SHA-256, kept apart per tenant, so that nobody
 * learns from it what others have.
 *
 * What holds of every implementation, and is tested for each of them:
 * - A blob is there whole or not at all. A torn or wrong upload leaves nothing that can be seen.
 * - A failed read throws (UNAVAILABLE); only a definite "not there" is absence. A caller that takes
 *   an error for absence would collect what is still wanted.
 * - Bytes pass through with backpressure: memory does not grow with the blob.
 * - All verbs may be repeated. Quotas are the caller's.
 */
import type { Readable } from 'node:stream';
import type { BlobHash } from '../model/blob.ts';

export interface BlobStat {
  size: number;
  /**
   * When it was last put, or last found by `missing`, give or take an hour: who was told that a
   * blob need not be sent relies on it being kept a while, so a collector spares young ones.
   */
  modifiedAtMs: number;
}

export interface BlobEntry extends BlobStat {
  hash: BlobHash;
}

/** Bytes from `start` up to and including `end`, as in an HTTP Range. Both lie within the blob. */
export interface BlobRange {
  start: number;
  end: number;
}

/** A buffer is a stream of one chunk: `[buffer]`. */
export type BlobContent = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export interface BlobStore {
  readonly kind: 'files' | 's3';
  /**
   * Resolves once the blob is safe on disk. INVALID_ARGUMENT where the bytes are not what `hash`
   * and `size` say. `created` is false where the tenant had it already; the content may then be
   * unread, and is the caller's to end.
   */
  put(
    tenant: string,
    hash: BlobHash,
    size: number,
    content: BlobContent,
  ): Promise<{ created: boolean }>;
  /** NOT_FOUND where there is none. Destroy the stream to stop early. */
  open(tenant: string, hash: BlobHash, range?: BlobRange): Promise<Readable>;
  /**
   * The same for whoever is done with a piece before asking for the next: its memory is used again.
   * All pieces but the last are larger than 64 KiB where the store can choose. Return it to stop
   * early.
   */
  pieces(tenant: string, hash: BlobHash, range?: BlobRange): Promise<AsyncIterator<Uint8Array>>;
  /** Undefined where there is none. */
  stat(tenant: string, hash: BlobHash): Promise<BlobStat | undefined>;
  /** Those of `hashes` that the tenant does not have, in their order, each once. */
  missing(tenant: string, hashes: readonly BlobHash[]): Promise<BlobHash[]>;
  /** False where there was none. */
  remove(tenant: string, hash: BlobHash): Promise<boolean>;
  /** Every blob of the tenant, in no order; one that comes or goes meanwhile may be missed. */
  list(tenant: string): AsyncIterable<BlobEntry>;
  /** Good for `ttlMs` without a token. Undefined where the store has no URLs of its own. */
  signedUrl(tenant: string, hash: BlobHash, ttlMs: number): Promise<string | undefined>;
  close(): Promise<void>;
}
