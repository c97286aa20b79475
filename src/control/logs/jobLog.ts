/** One job's log: its state in memory, its open file, who appends to it and who waits for it. */
import { constants } from 'node:fs';
import { mkdir, open, rm, truncate, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { LogAck } from '../../protocol/agent.ts';
import type { LogRead, OwnedChunk } from '../logs.ts';
import { commitRound, stageRound, type JobState } from './jobState.ts';
import type { LogStoreLimits } from './limits.ts';
import { loadJob, segmentPath } from './loadJob.ts';
import { readRecords, type ReadResult } from './reader.ts';
import { SEGMENT_MAGIC } from './record.ts';
import { sealSegment } from './sealed.ts';
import { emptySegment, syncFolder, writeExactly, writeParts, type Segment } from './segment.ts';

export interface JobLogOptions {
  folder: string;
  clock: Clock;
  log: Log;
  limits: LogStoreLimits;
}

interface PendingAppend {
  chunks: OwnedChunk[];
  bytes: number;
  resolve(acks: LogAck[]): void;
  reject(error: unknown): void;
}

interface Waiter {
  after: number;
  finish(found: boolean): void;
}

export class JobLog {
  readonly folder: string;
  /** Calls in progress: it must stay in memory. */
  users = 0;
  usedAtMs: number;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #limits: LogStoreLimits;
  readonly #pending: PendingAppend[] = [];
  readonly #waiters = new Set<Waiter>();
  #noMoreWaits = false;
  #loading: Promise<JobState> | undefined;
  #state: JobState | undefined;
  #handle: FileHandle | undefined;
  /** An unacknowledged end of the open file that could not be cut off yet. */
  #dirtyTail = false;
  #writing = false;

  constructor(options: JobLogOptions) {
    this.folder = options.folder;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#limits = options.limits;
    this.usedAtMs = options.clock.now();
  }

  /** Nothing is lost by dropping it from memory. */
  get idle(): boolean {
    return this.users === 0 && this.#pending.length === 0 && !this.#writing && !this.#dirtyTail;
  }

  get hasPending(): boolean {
    return this.#pending.length > 0;
  }

  get writing(): boolean {
    return this.#writing;
  }

  get holdsFile(): boolean {
    return this.#handle !== undefined;
  }

  async state(): Promise<JobState> {
    this.usedAtMs = this.#clock.now();
    if (this.#state !== undefined) return this.#state;
    this.#loading ??= loadJob(this.folder, this.#limits.blockBytes, this.#log);
    try {
      this.#state = await this.#loading;
      return this.#state;
    } finally {
      this.#loading = undefined;
    }
  }

  /** Queues chunks; the store runs rounds, in which all that waits is written together. */
  append(chunks: OwnedChunk[], bytes: number): Promise<LogAck[]> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ chunks, bytes, resolve, reject });
    });
  }

  async runRound(): Promise<void> {
    const batch = this.#takePending();
    this.#writing = true;
    try {
      const acks = await this.#write(batch.flatMap((append) => append.chunks));
      let at = 0;
      for (const append of batch) {
        append.resolve(acks.slice(at, at + append.chunks.length));
        at += append.chunks.length;
      }
    } catch (error) {
      for (const append of batch) append.reject(error);
    } finally {
      this.#writing = false;
    }
  }

  #takePending(): PendingAppend[] {
    let count = 0;
    let bytes = 0;
    for (const append of this.#pending) {
      if (count > 0 && bytes + append.bytes > this.#limits.roundBytes) break;
      bytes += append.bytes;
      count++;
    }
    return this.#pending.splice(0, count);
  }

  async #write(chunks: OwnedChunk[]): Promise<LogAck[]> {
    const state = await this.state();
    const last = state.segments.at(-1);
    const segment = last?.phase === 'open' ? last : this.#nextSegment(state);
    const round = stageRound(state, segment, chunks, this.#limits);
    if (round.parts.length === 0) return round.acks;
    const isNew = last !== segment;
    try {
      this.#handle ??= await this.#openFile(segment);
      await writeParts(this.#handle, round.parts, segment.bytes);
      await this.#handle.datasync();
      if (isNew) await this.#syncNames(segment);
    } catch (error) {
      await this.#undo(segment, isNew);
      throw error;
    }
    if (isNew) state.segments.push(segment);
    commitRound(state, segment, round, this.#limits.blockBytes);
    this.#wake(state);
    return round.acks;
  }

  #nextSegment(state: JobState): Segment {
    const ordinal = (state.segments.at(-1)?.ordinal ?? 0) + 1;
    return emptySegment(ordinal, segmentPath(this.folder, ordinal, 'log'));
  }

  /** Cuts off what a crash or a failed write left behind the acknowledged bytes. */
  async #openFile(segment: Segment): Promise<FileHandle> {
    if (segment.ordinal === 1) await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const handle = await open(segment.path, constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      const { size } = await handle.stat();
      if (size > segment.bytes) await handle.truncate(segment.bytes);
      if (segment.bytes === SEGMENT_MAGIC.length) await writeExactly(handle, SEGMENT_MAGIC, 0);
    } catch (error) {
      await handle.close();
      throw error;
    }
    this.#dirtyTail = false;
    return handle;
  }

  async #syncNames(segment: Segment): Promise<void> {
    await syncFolder(this.folder);
    if (segment.ordinal > 1) return;
    await syncFolder(dirname(this.folder));
    await syncFolder(dirname(dirname(this.folder)));
  }

  /** After a failed write or fsync the file's end is unknown: it is cut back before going on. */
  async #undo(segment: Segment, isNew: boolean): Promise<void> {
    try {
      await this.closeFile();
      if (isNew) await rm(segment.path, { force: true });
      else await truncate(segment.path, segment.bytes);
    } catch (error) {
      this.#dirtyTail = true;
      this.#log.warn({ path: segment.path, err: error }, 'cannot cut back a failed log write yet');
    }
  }

  async read(query: LogRead): Promise<ReadResult> {
    return readRecords(await this.state(), query, this.#limits);
  }

  async wait(after: number, waitMs: number): Promise<boolean> {
    const state = await this.state();
    if (state.nextSeq - 1 > after) return true;
    // The store closed while the state was read: nobody would end this wait any more.
    if (this.#noMoreWaits) return false;
    return new Promise((resolve) => {
      const finish = (found: boolean): void => {
        timer.cancel();
        this.#waiters.delete(waiter);
        resolve(found);
      };
      const timer = this.#clock.setTimer(waitMs, () => finish(false));
      const waiter: Waiter = { after, finish };
      this.#waiters.add(waiter);
    });
  }

  #wake(state: JobState): void {
    for (const waiter of this.#waiters) {
      if (state.nextSeq - 1 > waiter.after) waiter.finish(true);
    }
  }

  /** Ends all waits as if their time were up: the store closes. */
  endWaits(): void {
    this.#noMoreWaits = true;
    for (const waiter of this.#waiters) waiter.finish(false);
  }

  /** Closes the open segment when it has reached `bytes`: the next append starts another. */
  async rotate(bytes: number): Promise<void> {
    const last = this.#state?.segments.at(-1);
    if (last?.phase !== 'open' || last.bytes < bytes || this.#writing || this.#dirtyTail) return;
    last.phase = 'closed';
    last.closedAtMs = this.#clock.now();
    await this.closeFile();
  }

  /** When the next closed segment is to be compressed; null when there is none. */
  get sealAtMs(): number | null {
    const next = this.#state?.segments.find(({ phase }) => phase === 'closed');
    return next === undefined ? null : next.closedAtMs + this.#limits.sealAfterMs;
  }

  /** Compresses the closed segments that are due. Readers and appends go on meanwhile. */
  async seal(): Promise<void> {
    const segments = this.#state?.segments ?? [];
    const nowMs = this.#clock.now();
    while ((this.sealAtMs ?? Infinity) <= nowMs) {
      const at = segments.findIndex(({ phase }) => phase === 'closed');
      const segment = segments[at];
      if (segment === undefined) return;
      const target = segmentPath(this.folder, segment.ordinal, 'zst');
      segments[at] = await sealSegment(segment, target);
      await rm(segment.path, { force: true });
    }
  }

  async closeFile(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}
