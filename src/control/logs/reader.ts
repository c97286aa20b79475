/** Reads a job's records, forwards or the last lines, touching only blocks that can hold them. */
import { open, type FileHandle } from 'node:fs/promises';
import type { LogRecordView } from '../../protocol/jobs.ts';
import type { LogRead } from '../logs.ts';
import type { JobState } from './jobState.ts';
import type { LogStoreLimits } from './limits.ts';
import type { StoredRecord } from './record.ts';
import { damaged, decompressBlock } from './sealed.ts';
import { readExactly, recordsOfBlock, type Block, type Segment } from './segment.ts';
import { renderBytes } from './split.ts';
import { walkTail } from './tail.ts';

/** What a record weighs in a page beside its bytes: names and numbers around them. */
const VIEW_OVERHEAD_BYTES = 128;

export interface ReadResult {
  records: LogRecordView[];
  next: number;
}

interface PlacedBlock {
  segment: Segment;
  /** Its place in the segment, which compression keeps. */
  at: number;
  block: Block;
}

/** What a read may see: all that was on disk when it began. */
interface Reading {
  segments: readonly Segment[];
  query: LogRead;
  lastSeq: number;
  limits: LogStoreLimits;
}

export async function readRecords(
  state: JobState,
  query: LogRead,
  limits: LogStoreLimits,
): Promise<ReadResult> {
  const lastSeq = state.nextSeq - 1;
  const reading: Reading = { segments: [...state.segments], query, lastSeq, limits };
  const files = new BlockReader(state);
  try {
    if (query.tailLines === undefined) return await readForward(reading, files);
    const records = await readTail(reading, query.tailLines, files);
    return { records, next: Math.max(query.after, lastSeq) };
  } finally {
    await files.close();
  }
}

/** The blocks that may hold what is asked, one at a time: a page needs few of them. */
function* blocksForward({ segments, query, lastSeq }: Reading): Generator<PlacedBlock> {
  for (const segment of segments) {
    if (lastSeqOf(segment) <= query.after) continue;
    for (const [at, block] of segment.blocks.entries()) {
      if (block.firstSeq > lastSeq) return;
      if (mayHold(block, query)) yield { segment, at, block };
    }
  }
}

function* blocksBackward({ segments, query }: Reading): Generator<PlacedBlock> {
  for (const segment of segments.toReversed()) {
    for (const [back, block] of segment.blocks.toReversed().entries()) {
      if (block.lastSeq !== 0 && block.lastSeq <= query.after) return;
      const at = segment.blocks.length - 1 - back;
      if (mayHold(block, query)) yield { segment, at, block };
    }
  }
}

function mayHold(block: Block, query: LogRead): boolean {
  if (block.lastSeq <= query.after) return false;
  if (query.task !== undefined && !block.tasks.has(query.task)) return false;
  return query.sinceMs === undefined || block.maxAtMs >= query.sinceMs;
}

function lastSeqOf({ blocks }: Segment): number {
  return blocks.findLast((block) => block.lastSeq > 0)?.lastSeq ?? 0;
}

async function readForward(reading: Reading, files: BlockReader): Promise<ReadResult> {
  const { query, lastSeq, limits } = reading;
  const records: LogRecordView[] = [];
  let weight = 0;
  let place = 0;
  for (const placed of blocksForward(reading)) {
    // Nothing found means nothing there: only a page that has something ends early.
    if (place++ >= limits.readBlocks && records.length > 0) {
      return { records, next: placed.block.firstSeq - 1 };
    }
    for (const record of await files.read(placed)) {
      if (!matches(record, placed.segment, reading)) continue;
      if (weight >= query.limitBytes) return { records, next: records.at(-1)?.seq ?? query.after };
      records.push(viewOf(record, placed.segment, 0));
      weight += record.payload.length + VIEW_OVERHEAD_BYTES;
    }
  }
  return { records, next: Math.max(query.after, lastSeq) };
}

async function readTail(
  reading: Reading,
  tailLines: number,
  files: BlockReader,
): Promise<LogRecordView[]> {
  const walk = walkTail(tailLines);
  const records: LogRecordView[] = [];
  let weight = 0;
  for (const placed of blocksBackward(reading)) {
    if (walk.done) break;
    for (const record of (await files.read(placed)).toReversed()) {
      if (!matches(record, placed.segment, reading)) continue;
      if (walk.done || weight >= reading.limits.tailBytes) return records.toReversed();
      const uid = placed.segment.attempts[record.ref]?.uid ?? '';
      const stream = record.kind === 'notice' ? 'notice' : `${uid}/${record.stream}`;
      const start = walk.take({ ...record, stream });
      if (start === undefined) continue;
      records.push(viewOf(record, placed.segment, start));
      weight += record.payload.length - start + VIEW_OVERHEAD_BYTES;
    }
  }
  return records.toReversed();
}

function matches(record: StoredRecord, segment: Segment, { query, lastSeq }: Reading): boolean {
  if (record.seq <= query.after || record.seq > lastSeq) return false;
  if (query.sinceMs !== undefined && record.atMs < query.sinceMs) return false;
  return query.task === undefined || segment.attempts[record.ref]?.index === query.task;
}

/** Reads blocks; the file of the last one stays open, for the next is mostly behind it. */
class BlockReader {
  readonly #state: JobState;
  #path = '';
  #handle: FileHandle | undefined;

  constructor(state: JobState) {
    this.#state = state;
  }

  async read(placed: PlacedBlock): Promise<StoredRecord[]> {
    try {
      return await this.#readHere(placed);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      // Compressed since this read began: its blocks lie in another file, in the same order.
      const { segment, at } = placed;
      const sealed = this.#state.segments.find(({ ordinal }) => ordinal === segment.ordinal);
      const block = sealed?.blocks[at];
      if (sealed === undefined || sealed === segment || block === undefined) throw error;
      return await this.#readHere({ segment: sealed, at, block });
    }
  }

  async #readHere({ segment, block }: PlacedBlock): Promise<StoredRecord[]> {
    // As they are now: the last block grows while we read.
    const { position, length } = block;
    const { path, phase } = segment;
    const stored = await readExactly(await this.#open(path), position, length);
    const bytes = phase === 'sealed' ? await decompressBlock(path, stored) : stored;
    const { records, intact } = recordsOfBlock(bytes);
    if (!intact || stored.length !== length) throw damaged(path);
    return records;
  }

  async #open(path: string): Promise<FileHandle> {
    if (this.#handle === undefined || this.#path !== path) {
      await this.close();
      this.#handle = await open(path, 'r');
      this.#path = path;
    }
    return this.#handle;
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}

function viewOf(record: StoredRecord, segment: Segment, start: number): LogRecordView {
  const attempt = segment.attempts[record.ref];
  if (attempt === undefined) throw damaged(segment.path);
  return {
    seq: record.seq,
    task: attempt.task,
    index: attempt.index,
    attempt: attempt.attempt,
    stream: record.stream,
    offset: record.offset + start,
    atMs: record.atMs,
    ...renderBytes(record.payload.subarray(start)),
  };
}
