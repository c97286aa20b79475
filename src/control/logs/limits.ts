/** Named limits of the log store, each with its unit and reason. All can be set. */

const KiB = 1024;
const MiB = 1024 * KiB;

export interface LogStoreLimits {
  /** Longest run of bytes under one sequence number: what a follower gets in one event. */
  recordBytes: number;
  /** A longer line counts as several: finding where a line starts never reads a whole log. */
  lineBytes: number;
  /** Bytes of output kept per job: the head. What follows is acknowledged and not stored. */
  jobBytes: number;
  /** An open segment of this size is closed and compressed: bounds what a restart has to scan. */
  segmentBytes: number;
  /** It is compressed so long after: who follows a busy job has read it by then. */
  sealAfterMs: number;
  /** What one index entry covers and one decompression yields: bounds the cost of a seek. */
  blockBytes: number;
  /** A job's bytes per write and fsync: bounds memory, and how far a segment overshoots. */
  roundBytes: number;
  /** Bytes accepted and not yet on disk; beyond it agents are asked to come back. */
  pendingBytes: number;
  /** Jobs that are written and fsynced at once: as many as libuv has threads. */
  parallelRounds: number;
  /** Files kept open for appending; the longest unused is closed first. */
  openFiles: number;
  /** Jobs whose index is in memory without being in use. */
  loadedJobs: number;
  /** A job untouched for this long leaves the memory. */
  idleMs: number;
  /** How often that is looked for. */
  sweepMs: number;
  /** When a job falls idle, an open segment below this stays open: tiny segments cost more. */
  idleSealBytes: number;
  /** Blocks looked at by one read that found something: what it looks for may be rare. */
  readBlocks: number;
  /** Bytes of one `tail`: it is answered whole, in one page. */
  tailBytes: number;
}

export const LOG_STORE_LIMITS: Readonly<LogStoreLimits> = {
  recordBytes: 64 * KiB,
  lineBytes: 64 * KiB,
  jobBytes: 1024 * MiB,
  segmentBytes: 16 * MiB,
  sealAfterMs: 10_000,
  blockBytes: 128 * KiB,
  roundBytes: 8 * MiB,
  pendingBytes: 128 * MiB,
  parallelRounds: 4,
  openFiles: 256,
  loadedJobs: 2000,
  idleMs: 60_000,
  sweepMs: 10_000,
  idleSealBytes: 256 * KiB,
  readBlocks: 128,
  tailBytes: 8 * MiB,
};
