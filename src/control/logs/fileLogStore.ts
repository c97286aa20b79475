/**
 * Logs as files: per job a folder of segments. Chunks of all callers are gathered per job; a few
 * jobs at a time are written and fsynced, each with all that came for it since. An idle job costs
 * nothing.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Clock, Timer } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { LogAck } from '../../protocol/agent.ts';
import type { LogRead, LogStore, OwnedChunk } from '../logs.ts';
import { JobLog } from './jobLog.ts';
import { LOG_STORE_LIMITS, type LogStoreLimits } from './limits.ts';
import type { ReadResult } from './reader.ts';
import { Sealer } from './sealer.ts';

export interface FileLogStoreOptions {
  /** Holds nothing else. Made when the first byte arrives. */
  dir: string;
  clock: Clock;
  log: Log;
  limits?: Partial<LogStoreLimits>;
}

/** Job ids become folder names. */
const JOB_ID = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

export function createFileLogStore(options: FileLogStoreOptions): LogStore {
  return new FileLogStore(options);
}

class FileLogStore implements LogStore {
  readonly #options: FileLogStoreOptions;
  readonly #limits: LogStoreLimits;
  /** The longest unused first. */
  readonly #jobs = new Map<string, JobLog>();
  readonly #withFile = new Set<JobLog>();
  readonly #queue = new Set<JobLog>();
  readonly #sealer: Sealer;
  readonly #rounds = new Map<JobLog, Promise<void>>();
  #sweeper: Timer | undefined;
  #sweeping: Promise<void> | undefined;
  #pendingBytes = 0;
  #closed = false;

  constructor(options: FileLogStoreOptions) {
    this.#options = options;
    this.#limits = { ...LOG_STORE_LIMITS, ...options.limits };
    this.#sealer = new Sealer(options);
  }

  async append(chunks: OwnedChunk[]): Promise<LogAck[]> {
    let bytes = 0;
    for (const chunk of chunks) bytes += chunk.bytes.length;
    if (this.#pendingBytes + bytes > this.#limits.pendingBytes && this.#pendingBytes > 0) {
      throw new DroverError('UNAVAILABLE', 'more log bytes arrive than the disk takes', {
        hint: 'Agents keep the output and send it again.',
      });
    }
    this.#pendingBytes += bytes;
    try {
      return await this.#appendByJob(chunks);
    } finally {
      this.#pendingBytes -= bytes;
    }
  }

  /** A job that fails does not hold up the others. */
  async #appendByJob(chunks: OwnedChunk[]): Promise<LogAck[]> {
    const byJob = Map.groupBy(chunks, (chunk) => chunk.job);
    const acks = new Map<OwnedChunk, LogAck>();
    const failures: unknown[] = [];
    const work = [...byJob].map(async ([job, part]) => {
      try {
        const done = await this.#appendToJob(job, part);
        done.forEach((ack, n) => acks.set(part[n] as OwnedChunk, ack));
      } catch (error) {
        this.#options.log.error({ job, err: error }, 'log bytes could not be stored');
        failures.push(error);
      }
    });
    await Promise.all(work);
    if (failures.length > 0 && failures.length === byJob.size) throw storageError(failures[0]);
    return chunks.map((chunk) => acks.get(chunk) ?? unstored(chunk, chunks));
  }

  #appendToJob(job: string, chunks: OwnedChunk[]): Promise<LogAck[]> {
    return this.#withJob(job, (jobLog) => {
      let bytes = 0;
      for (const chunk of chunks) bytes += chunk.bytes.length;
      const done = jobLog.append(chunks, bytes);
      this.#queue.add(jobLog);
      this.#pump();
      return done;
    });
  }

  /** Starts rounds while there are jobs waiting and threads to run them; one per job. */
  #pump(): void {
    for (const job of this.#queue) {
      if (this.#rounds.size >= this.#limits.parallelRounds) return;
      if (this.#rounds.has(job)) continue;
      this.#queue.delete(job);
      const round = this.#runRound(job).finally(() => {
        this.#rounds.delete(job);
        if (job.hasPending) this.#queue.add(job);
        this.#pump();
      });
      this.#rounds.set(job, round);
    }
  }

  async #runRound(job: JobLog): Promise<void> {
    job.users++;
    try {
      await job.runRound();
      await job.rotate(this.#limits.segmentBytes);
      await this.#trackFile(job);
      this.#sealer.later(job);
    } catch (error) {
      this.#options.log.error({ folder: job.folder, err: error }, 'cannot close a log file');
    } finally {
      job.users--;
    }
  }

  async #trackFile(job: JobLog): Promise<void> {
    this.#withFile.delete(job);
    if (job.holdsFile) this.#withFile.add(job);
    for (const oldest of this.#withFile) {
      if (this.#withFile.size <= this.#limits.openFiles) return;
      if (oldest.writing) continue;
      this.#withFile.delete(oldest);
      await oldest.closeFile();
    }
  }

  async read(job: string, query: LogRead): Promise<ReadResult> {
    try {
      return await this.#withJob(job, (jobLog) => jobLog.read(query));
    } catch (error) {
      throw storageError(error);
    }
  }

  async wait(job: string, after: number, waitMs: number): Promise<boolean> {
    if (this.#closed) return false;
    try {
      return await this.#withJob(job, (jobLog) => jobLog.wait(after, waitMs));
    } catch (error) {
      throw storageError(error);
    }
  }

  async offsets(job: string): Promise<Record<string, { stdout: number; stderr: number }>> {
    try {
      const state = await this.#withJob(job, (jobLog) => jobLog.state());
      const found: Record<string, { stdout: number; stderr: number }> = {};
      for (const { uid, stdout, stderr } of state.attempts.values()) {
        found[uid] = { stdout: stdout.end, stderr: stderr.end };
      }
      return found;
    } catch (error) {
      throw storageError(error);
    }
  }

  async #withJob<Result>(id: string, use: (job: JobLog) => Promise<Result>): Promise<Result> {
    if (this.#closed) throw new DroverError('UNAVAILABLE', 'the log store is closed');
    const job = this.#job(id);
    job.users++;
    try {
      return await use(job);
    } finally {
      job.users--;
    }
  }

  #job(id: string): JobLog {
    let job = this.#jobs.get(id);
    if (job === undefined) {
      if (!JOB_ID.test(id)) throw new DroverError('INVALID_ARGUMENT', 'not a job id');
      const { dir, clock, log } = this.#options;
      // Spread over 256 folders: a folder of a million names is slow to list and to back up.
      const shard = createHash('md5').update(id).digest('hex').slice(0, 2);
      job = new JobLog({ folder: join(dir, shard, id), clock, log, limits: this.#limits });
    }
    this.#jobs.delete(id);
    this.#jobs.set(id, job);
    if (this.#jobs.size > this.#limits.loadedJobs) this.#startSweep();
    this.#armSweeper();
    return job;
  }

  #armSweeper(): void {
    if (this.#closed || this.#jobs.size === 0) return;
    this.#sweeper ??= this.#options.clock.setTimer(this.#limits.sweepMs, () => {
      this.#sweeper = undefined;
      this.#startSweep();
    });
  }

  #startSweep(): void {
    this.#sweeping ??= this.#sweep()
      .catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'cannot put idle logs away');
      })
      .finally(() => {
        this.#sweeping = undefined;
        this.#armSweeper();
      });
  }

  /** Lets go of jobs that nobody has used for a while, or that are too many. */
  async #sweep(): Promise<void> {
    const oldest = this.#options.clock.now() - this.#limits.idleMs;
    for (const [id, job] of this.#jobs) {
      const tooMany = this.#jobs.size > this.#limits.loadedJobs;
      if (!tooMany && job.usedAtMs > oldest) break;
      if (!job.idle) continue;
      await job.rotate(this.#limits.idleSealBytes);
      this.#sealer.later(job);
      if (!job.idle || this.#sealer.has(job)) continue;
      this.#jobs.delete(id);
      this.#withFile.delete(job);
      await job.closeFile();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#sweeper?.cancel();
    for (const job of this.#jobs.values()) job.endWaits();
    while (this.#rounds.size > 0) await Promise.all(this.#rounds.values());
    await this.#sealer.close();
    await this.#sweeping;
    for (const job of this.#jobs.values()) await job.closeFile();
    this.#jobs.clear();
  }
}

/** Acknowledges nothing new: up to where the sender begins, which it had acknowledged before. */
function unstored(chunk: OwnedChunk, sent: readonly OwnedChunk[]): LogAck {
  const { uid, stream } = chunk;
  let offset = chunk.offset;
  for (const other of sent) {
    if (other.uid === uid && other.stream === stream) offset = Math.min(offset, other.offset);
  }
  return { uid, stream, offset };
}

/** What the disk says (full, gone, too many files) passes; agents and readers come back. */
function storageError(error: unknown): DroverError {
  if (error instanceof DroverError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  return new DroverError('UNAVAILABLE', `the log store's disk answers ${code}`, {
    hint: full ? 'Free some space in the data folder; nothing is lost meanwhile.' : 'Try again.',
    cause: error,
  });
}
