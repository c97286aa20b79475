/** Reads a job's records, forwards or the last lines, touching only blocks that can hold them. */
import { open } from 'node:fs/promises';
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
  block: Block;
}

export async function readRecords(
  state: JobState,
  query: LogRead,
  limits: LogStoreLimits,
): Promise<ReadResult> {
  const lastSeq = state.nextSeq - 1;
  const blocks = blocksAfter(state, query);
  if (query.tailLines !== undefined) {
    const records = await readTail(blocks, query, query.tailLines, limits);
    return { records, next: Math.max(query.after, lastSeq) };
  }
  return readForward(blocks, query, lastSeq, limits);
}

/**
 * The blocks that may hold what is asked, in order, as they are now: copies, since the last one
 * grows while we read.
 */
function blocksAfter(state: JobState, query: LogRead): PlacedBlock[] {
  const found: PlacedBlock[] = [];
  for (const segment of state.segments.toReversed()) {
    for (const block of segment.blocks.toReversed()) {
      if (block.lastSeq === 0) continue;
      if (block.lastSeq <= query.after) return found.toReversed();
      if (query.task !== undefined && !block.tasks.has(query.task)) continue;
      if (query.sinceMs !== undefined && block.maxAtMs < query.sinceMs) continue;
      found.push({ segment, block: { ...block } });
    }
  }
  return found.toReversed();
}

async function readForward(
  blocks: PlacedBlock[],
  query: LogRead,
  lastSeq: number,
  limits: LogStoreLimits,
): Promise<ReadResult> {
  const records: LogRecordView[] = [];
  let weight = 0;
  for (const [place, placed] of blocks.entries()) {
    // Nothing found means nothing there: only a page that has something ends early.
    if (place >= limits.readBlocks && records.length > 0) {
      return { records, next: placed.block.firstSeq - 1 };
    }
    for (const record of await readBlock(placed)) {
      if (!matches(record, placed.segment, query)) continue;
      if (weight >= query.limitBytes) return { records, next: records.at(-1)?.seq ?? query.after };
      records.push(viewOf(record, placed.segment, 0));
      weight += record.payload.length + VIEW_OVERHEAD_BYTES;
    }
  }
  return { records, next: Math.max(query.after, lastSeq) };
}

async function readTail(
  blocks: PlacedBlock[],
  query: LogRead,
  tailLines: number,
  limits: LogStoreLimits,
): Promise<LogRecordView[]> {
  const walk = walkTail(tailLines);
  const records: LogRecordView[] = [];
  let weight = 0;
  for (const placed of blocks.toReversed()) {
    if (walk.done) break;
    for (const record of (await readBlock(placed)).toReversed()) {
      if (!matches(record, placed.segment, query)) continue;
      if (walk.done || weight >= limits.tailBytes) return records.toReversed();
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

function matches(record: StoredRecord, segment: Segment, query: LogRead): boolean {
  if (record.seq <= query.after) return false;
  if (query.sinceMs !== undefined && record.atMs < query.sinceMs) return false;
  return query.task === undefined || segment.attempts[record.ref]?.index === query.task;
}

async function readBlock({ segment, block }: PlacedBlock): Promise<StoredRecord[]> {
  const handle = await open(segment.path, 'r');
  let stored: Buffer;
  try {
    stored = await readExactly(handle, block.position, block.length);
  } finally {
    await handle.close();
  }
  const bytes = segment.phase === 'sealed' ? await decompressBlock(segment.path, stored) : stored;
  const { records, intact } = recordsOfBlock(bytes);
  if (!intact || stored.length !== block.length) throw damaged(segment.path);
  return records;
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
