/** Named limits of the spool, each with its unit and reason. All can be set. */

export interface SpoolLimits {
  /** Bytes of one request: a new line waits for one, and an fsync serves one. */
  batchBytes: number;
  /** Bytes of one stream at a time: a hundred chatty attempts all get into every request. */
  chunkBytes: number;
  /** Attempts that have no more than this to send go before all others: a line, a few lines. */
  shortBytes: number;
  /** Bytes per second taken from one attempt; what is beyond waits in its file. */
  attemptBytesPerSecond: number;
  /** How often files that grow are looked at. */
  flushMs: number;
  /** A file that did not grow for this long is no longer looked at but watched. */
  quietMs: number;
  /** How often watched files are looked at all the same: some file systems report nothing. */
  recheckMs: number;
  /** The same where the kernel does not tell when a file grows. */
  unwatchedMs: number;
  /** How long a stream rests whose bytes the controller did not take. */
  refusedMs: number;
  /** The pause after a first failed request, and the longest one. */
  retryMs: number;
  longestRetryMs: number;
  /** How often acknowledged offsets are written down. */
  rememberMs: number;
}

export const SPOOL_LIMITS: Readonly<SpoolLimits> = {
  batchBytes: 2 * 1024 * 1024,
  chunkBytes: 32 * 1024,
  shortBytes: 4 * 1024,
  attemptBytesPerSecond: 32 * 1024 * 1024,
  flushMs: 25,
  quietMs: 2000,
  recheckMs: 5000,
  unwatchedMs: 200,
  refusedMs: 1000,
  retryMs: 200,
  longestRetryMs: 5000,
  rememberMs: 1000,
};
