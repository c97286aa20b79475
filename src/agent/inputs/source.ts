/** Where an input comes from: one small file per kind of address. */
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import type { InputSpec } from '../../model/jobParts.ts';
import type { ContentCache } from '../cache/contentCache.ts';
import type { SourceNotes } from './notes.ts';

export interface Arrival {
  input: InputSpec;
  /** Where it must appear. */
  target: string;
  cache: ContentCache;
  notes: SourceNotes;
  /** How the blobs of the attempt's tenant are fetched. */
  blobs: BlobClientOptions;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  say: (progress: string) => void;
}

/**
 * Puts the input at its target and returns what it is: a hash, or a path that has none. Throws
 * `Unprepared` with the input's name where it cannot be had.
 */
export type Source = (arrival: Arrival) => Promise<string>;
