/** A segment: a run of a job's records in one file, and the index that finds blocks of them. */
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import {
  scanRecords,
  SEGMENT_MAGIC,
  skippedBytes,
  type AttemptName,
  type ScannedRecord,
  type StoredRecord,
} from './record.ts';
import { advance, type Cursor } from './split.ts';

/** Whole records that are read, and compressed, together. */
export interface Block {
  /** Where in the file, and how many bytes there. */
  position: number;
  length: number;
  /** Both 0 while it has only records that nobody sees. */
  firstSeq: number;
  lastSeq: number;
  maxAtMs: number;
  tasks: Set<number>;
}

/** An attempt as a segment declares it, and how far its streams had come at the segment's end. */
export interface SegmentAttempt extends AttemptName {
  stdout: Cursor;
  stderr: Cursor;
}

export interface Segment {
  ordinal: number;
  path: string;
  /** open: appended to. closed: never again. sealed: compressed. */
  phase: 'open' | 'closed' | 'sealed';
  /** Bytes of the file that count; what lies behind them was never acknowledged. */
  bytes: number;
  blocks: Block[];
  /** In order of declaration: a record's `ref` is its place here. */
  attempts: SegmentAttempt[];
  /** The place of a uid in `attempts`, while the segment is open. */
  refs: Map<string, number>;
  /** Bytes of output in it. */
  kept: number;
  /** The job's limit was reached in it. */
  noticed: boolean;
}

export function emptySegment(ordinal: number, path: string): Segment {
  const bytes = SEGMENT_MAGIC.length;
  return {
    ordinal,
    path,
    phase: 'open',
    bytes,
    blocks: [],
    attempts: [],
    refs: new Map(),
    kept: 0,
    noticed: false,
  };
}

/** What the index must know of a record that was added. */
export interface RecordPlace {
  length: number;
  seq: number;
  atMs: number;
  index: number;
}

/** Adds a record at the end of the segment to its index. */
export function indexRecord(segment: Segment, place: RecordPlace, blockBytes: number): void {
  let block = segment.blocks.at(-1);
  if (block === undefined || block.length >= blockBytes) {
    block = {
      position: segment.bytes,
      length: 0,
      firstSeq: 0,
      lastSeq: 0,
      maxAtMs: 0,
      tasks: new Set(),
    };
    segment.blocks.push(block);
  }
  block.length += place.length;
  segment.bytes += place.length;
  if (place.seq === 0) return;
  if (block.firstSeq === 0) block.firstSeq = place.seq;
  block.lastSeq = place.seq;
  block.maxAtMs = Math.max(block.maxAtMs, place.atMs);
  block.tasks.add(place.index);
}

/** Rebuilds an open segment's index from its file, up to the first torn or damaged record. */
export async function scanSegment(
  ordinal: number,
  path: string,
  blockBytes: number,
): Promise<{ segment: Segment; tornBytes: number }> {
  const segment = emptySegment(ordinal, path);
  const file = await readWhole(path);
  if (!file.subarray(0, SEGMENT_MAGIC.length).equals(SEGMENT_MAGIC)) {
    return { segment, tornBytes: file.length };
  }
  for (const { record, length } of scanRecords(file, SEGMENT_MAGIC.length)) {
    if (record.kind !== 'attempt' && segment.attempts[record.ref] === undefined) break;
    addScanned(segment, record);
    indexRecord(segment, placeOf(segment, record, length), blockBytes);
  }
  return { segment, tornBytes: file.length - segment.bytes };
}

function addScanned(segment: Segment, record: ScannedRecord): void {
  if (record.kind === 'attempt') {
    const { uid, task, index, attempt } = record;
    const stdout = { end: 0, lineBytes: 0 };
    const stderr = { end: 0, lineBytes: 0 };
    segment.refs.set(uid, segment.attempts.length);
    segment.attempts.push({ uid, task, index, attempt, stdout, stderr });
    return;
  }
  const cursor = segment.attempts[record.ref]?.[record.stream];
  if (cursor === undefined) return;
  if (record.kind === 'notice') {
    segment.noticed = true;
    return;
  }
  cursor.end = record.offset;
  if (record.kind === 'skip') {
    cursor.end += skippedBytes(record);
    cursor.lineBytes = 0;
    return;
  }
  segment.kept += record.payload.length;
  advance(cursor, record.lineStart, record.payload);
}

function placeOf(segment: Segment, record: ScannedRecord, length: number): RecordPlace {
  if (record.kind === 'attempt') return { length, seq: 0, atMs: 0, index: record.index };
  const index = segment.attempts[record.ref]?.index ?? 0;
  return { length, seq: record.seq, atMs: record.atMs, index };
}

/** The visible records of a block, given its (decompressed) bytes. */
export function recordsOfBlock(bytes: Buffer): { records: StoredRecord[]; intact: boolean } {
  const records: StoredRecord[] = [];
  let read = 0;
  for (const { record, at, length } of scanRecords(bytes)) {
    read = at + length;
    if (record.kind === 'output' || record.kind === 'notice') records.push(record);
  }
  return { records, intact: read === bytes.length };
}

async function readWhole(path: string): Promise<Buffer> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    return await readExactly(handle, 0, size);
  } finally {
    await handle.close();
  }
}

/** Fewer bytes than asked for come back only where the file ends. */
export async function readExactly(
  handle: FileHandle,
  position: number,
  length: number,
): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return buffer.subarray(0, done);
}

/** A short write is how a full disk first shows. */
export async function writeExactly(
  handle: FileHandle,
  bytes: Buffer,
  position: number,
): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const left = bytes.length - done;
    const { bytesWritten } = await handle.write(bytes, done, left, position + done);
    done += bytesWritten;
  }
}

/** As many as every system takes in one call. */
const PARTS_PER_WRITE = 1024;

/** Many buffers, one after the other, without joining them first. */
export async function writeParts(
  handle: FileHandle,
  parts: readonly Buffer[],
  position: number,
): Promise<void> {
  let at = position;
  for (let first = 0; first < parts.length; first += PARTS_PER_WRITE) {
    const group = parts.slice(first, first + PARTS_PER_WRITE);
    const length = group.reduce((sum, part) => sum + part.length, 0);
    const { bytesWritten } = await handle.writev(group, at);
    // Rare: the rest again, in one piece.
    if (bytesWritten < length) {
      const rest = Buffer.concat(group).subarray(bytesWritten);
      await writeExactly(handle, rest, at + bytesWritten);
    }
    at += length;
  }
}

/** Makes a new, renamed or removed name in a folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
