/**
 * Where log bytes go: the contract between the controller and the log store (thread, or inline in
 * tests).
 */
import type { LogAck, OutputStream } from '../protocol/agent.ts';
import type { LogRecordView } from '../protocol/jobs.ts';

/** A chunk whose sender was checked: it ran this attempt. */
export interface OwnedChunk {
  uid: string;
  job: string;
  task: string;
  index: number;
  attempt: number;
  stream: OutputStream;
  offset: number;
  atMs: number;
  bytes: Uint8Array;
}

export interface LogRead {
  after: number;
  task?: number;
  sinceMs?: number;
  tailLines?: number;
  limitBytes: number;
}

export interface LogStore {
  /**
   * Appends what is new, drops what was had (by uid, stream, offset), refuses a gap by
   * acknowledging only up to it. Resolves after fsync.
   */
  append(chunks: OwnedChunk[]): Promise<LogAck[]>;
  read(job: string, query: LogRead): Promise<{ records: LogRecordView[]; next: number }>;
  /** Resolves true when the job has a record after `after`, false after `waitMs`. */
  wait(job: string, after: number, waitMs: number): Promise<boolean>;
  /** Bytes on disk per attempt uid and stream of a job, to know whether a tail is still missing. */
  offsets(job: string): Promise<Record<string, { stdout: number; stderr: number }>>;
  close(): Promise<void>;
}
