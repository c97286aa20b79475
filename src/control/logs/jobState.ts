/** What is on disk of one job's log, and how a round of chunks changes it: staged, committed. */
import type { LogAck } from '../../protocol/agent.ts';
import type { OwnedChunk } from '../logs.ts';
import type { LogStoreLimits } from './limits.ts';
import { encodeAttempt, encodeRecord, skipPayload, type StoredRecord } from './record.ts';
import { indexRecord, type RecordPlace, type Segment, type SegmentAttempt } from './segment.ts';
import { advance, splitRecords, startsLine } from './split.ts';

export interface JobState {
  /** In order. At most the last is open for appending. */
  segments: Segment[];
  attempts: Map<string, SegmentAttempt>;
  nextSeq: number;
  /** Bytes of output stored. */
  kept: number;
  /** The limit was reached, and the log says so. */
  noticed: boolean;
}

export function stateOf(segments: Segment[]): JobState {
  const state: JobState = { segments, attempts: new Map(), nextSeq: 1, kept: 0, noticed: false };
  for (const segment of segments) {
    for (const attempt of segment.attempts) mergeAttempt(state, attempt);
    for (const block of segment.blocks) {
      state.nextSeq = Math.max(state.nextSeq, block.lastSeq + 1);
    }
    state.kept += segment.kept;
    state.noticed ||= segment.noticed;
  }
  return state;
}

function mergeAttempt(state: JobState, found: SegmentAttempt): void {
  const known = state.attempts.get(found.uid);
  if (known === undefined) state.attempts.set(found.uid, structuredClone(found));
  else {
    // A segment that has nothing of a stream says 0.
    if (found.stdout.end >= known.stdout.end) known.stdout = { ...found.stdout };
    if (found.stderr.end >= known.stderr.end) known.stderr = { ...found.stderr };
  }
}

/** A round that is not yet on disk. Dropping it leaves no trace. */
export interface StagedRound {
  /** Per chunk, valid once the round is on disk. */
  acks: LogAck[];
  parts: Buffer[];
  places: RecordPlace[];
  attempts: Map<string, SegmentAttempt>;
  /** Attempts already declared in the segment, and those this round declares. */
  known: ReadonlyMap<string, number>;
  declared: Map<string, number>;
  nextSeq: number;
  kept: number;
  noticed: boolean;
}

export function stageRound(
  state: JobState,
  segment: Segment,
  chunks: readonly OwnedChunk[],
  limits: LogStoreLimits,
): StagedRound {
  const { nextSeq, kept, noticed } = state;
  const round: StagedRound = {
    acks: [],
    parts: [],
    places: [],
    attempts: new Map(),
    known: segment.refs,
    declared: new Map(),
    nextSeq,
    kept,
    noticed,
  };
  for (const chunk of chunks) {
    const attempt = stagedAttempt(state, round, chunk);
    const cursor = attempt[chunk.stream];
    const had = cursor.end - chunk.offset;
    // Below 0 the chunk starts beyond what we have: acknowledging `end` asks for what is missing.
    if (had >= 0 && had < chunk.bytes.length) stageBytes(round, attempt, chunk, had, limits);
    round.acks.push({ uid: chunk.uid, stream: chunk.stream, offset: cursor.end });
  }
  return round;
}

function stagedAttempt(state: JobState, round: StagedRound, chunk: OwnedChunk): SegmentAttempt {
  let attempt = round.attempts.get(chunk.uid);
  if (attempt === undefined) {
    const { uid, task, index, attempt: n } = chunk;
    const known = state.attempts.get(uid);
    const stdout = { end: 0, lineBytes: 0, ...known?.stdout };
    const stderr = { end: 0, lineBytes: 0, ...known?.stderr };
    attempt = { uid, task, index, attempt: n, stdout, stderr };
    round.attempts.set(uid, attempt);
  }
  return attempt;
}

function stageBytes(
  round: StagedRound,
  attempt: SegmentAttempt,
  chunk: OwnedChunk,
  had: number,
  limits: LogStoreLimits,
): void {
  const { buffer, byteOffset, byteLength } = chunk.bytes;
  const bytes = Buffer.from(buffer, byteOffset + had, byteLength - had);
  const fits = keptLength(round, bytes, limits);
  const cursor = attempt[chunk.stream];
  for (const payload of splitRecords(bytes.subarray(0, fits), limits.recordBytes)) {
    const lineStart = startsLine(cursor, limits.lineBytes);
    const { end: offset } = cursor;
    addRecord(round, attempt, chunk, { kind: 'output', offset, lineStart, payload });
    advance(cursor, lineStart, payload);
  }
  round.kept += fits;
  if (fits === bytes.length) return;
  const offset = cursor.end;
  if (!round.noticed) {
    const payload = Buffer.from(limitNotice(limits.jobBytes));
    addRecord(round, attempt, chunk, { kind: 'notice', offset, lineStart: true, payload });
    round.noticed = true;
  }
  const payload = skipPayload(bytes.length - fits);
  addRecord(round, attempt, chunk, { kind: 'skip', offset, lineStart: true, payload });
  cursor.end += bytes.length - fits;
  cursor.lineBytes = 0;
}

/** How much of these bytes the job's limit leaves room for: whole lines. */
function keptLength(round: StagedRound, bytes: Buffer, limits: LogStoreLimits): number {
  if (round.noticed) return 0;
  const room = limits.jobBytes - round.kept;
  if (bytes.length <= room) return bytes.length;
  return bytes.subarray(0, Math.max(0, room)).lastIndexOf(0x0a) + 1;
}

export function limitNotice(jobBytes: number): string {
  const mebibytes = (jobBytes / 1024 / 1024).toFixed(1);
  return `[drover] this job's log reached its ${mebibytes} MiB limit; later output is not kept\n`;
}

function addRecord(
  round: StagedRound,
  attempt: SegmentAttempt,
  chunk: OwnedChunk,
  what: Pick<StoredRecord, 'kind' | 'offset' | 'lineStart' | 'payload'>,
): void {
  let ref = round.known.get(attempt.uid) ?? round.declared.get(attempt.uid);
  const { index } = attempt;
  if (ref === undefined) {
    ref = round.known.size + round.declared.size;
    round.declared.set(attempt.uid, ref);
    pushParts(round, encodeAttempt(attempt), { seq: 0, atMs: 0, index });
  }
  const seq = what.kind === 'skip' ? 0 : round.nextSeq++;
  const { stream, atMs } = chunk;
  pushParts(round, encodeRecord({ ...what, ref, stream, seq, atMs }), { seq, atMs, index });
}

function pushParts(round: StagedRound, parts: Buffer[], place: Omit<RecordPlace, 'length'>): void {
  let length = 0;
  for (const part of parts) {
    length += part.length;
    round.parts.push(part);
  }
  round.places.push({ ...place, length });
}

/** The round is on disk: readers may see it. */
export function commitRound(
  state: JobState,
  segment: Segment,
  round: StagedRound,
  blockBytes: number,
): void {
  for (const place of round.places) indexRecord(segment, place, blockBytes);
  for (const [uid, ref] of round.declared) segment.refs.set(uid, ref);
  for (const [uid, attempt] of round.attempts) {
    const ref = segment.refs.get(uid);
    // An attempt of which nothing was stored (a gap, or nothing new) stays unknown.
    if (ref === undefined) continue;
    segment.attempts[ref] = structuredClone(attempt);
    state.attempts.set(uid, attempt);
  }
  segment.kept += round.kept - state.kept;
  segment.noticed ||= round.noticed && !state.noticed;
  state.nextSeq = round.nextSeq;
  state.kept = round.kept;
  state.noticed = round.noticed;
}
