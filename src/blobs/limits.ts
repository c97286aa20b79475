/** Every limit of the blob stores, with its unit and reason. */

const KIB = 1024;
const HOUR_MS = 3_600_000;

export const BLOB_LIMITS = {
  /** Read at once: larger ones are fresh memory each time, which costs more than it saves. */
  bufferBytes: 256 * KIB,
  /** Questions to a disk or a bucket at once, of one call. */
  atOnce: 32,
  /** A blob that was found is marked as wanted again when its mark is older than this. */
  refreshMs: HOUR_MS,
  /** How old the sum of a tenant's blobs may be: others may have put or removed some. */
  quotaMs: 60_000,
  /** A temporary file nobody wrote to for this long belongs to nobody. */
  leftoverMs: HOUR_MS,
};
