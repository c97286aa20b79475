/** Every limit of the blob stores, with its unit and reason. */

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;

export const BLOB_LIMITS = {
  /** What is gathered before one write, and read ahead: larger gains nothing. */
  bufferBytes: MIB,
  /** Questions to a disk or a bucket at once, of one call. */
  atOnce: 32,
  /** A blob that was found is marked as wanted again when its mark is older than this. */
  refreshMs: HOUR_MS,
  /** How old the sum of a tenant's blobs may be: others may have put or removed some. */
  quotaMs: 60_000,
  /** A temporary file nobody wrote to for this long belongs to nobody. */
  leftoverMs: HOUR_MS,
};
