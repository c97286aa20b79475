/**
 * Records as they lie in a segment. A segment explains itself: an attempt is declared before its
 * first output in it, and output refers to it by the number of its declaration.
 *
 *   record  = bodyLength u32, crc32(body) u32, body
 *   body    = kind u8, then
 *   attempt : index u32, n u32, uidLength u8, uid, task
 *   others  : flags u8, attempt u32, seq u48, offset u48, atMs u48, payload
 */
import { crc32 } from 'node:zlib';
import type { OutputStream } from '../../protocol/agent.ts';

export const SEGMENT_MAGIC = Buffer.from('DRVLOG01', 'latin1');
const PREFIX_BYTES = 8;
const HEAD_BYTES = 24;
const ATTEMPT_HEAD_BYTES = 10;

const KINDS = { attempt: 1, output: 2, skip: 3, notice: 4 } as const;
const STDERR = 1;
const LINE_START = 2;

export interface AttemptName {
  uid: string;
  task: string;
  index: number;
  attempt: number;
}

/**
 * output: bytes of the stream. notice: what Drover says in its place. skip: bytes that were
 * acknowledged and not kept; its seq is 0 since nobody sees it, and its payload is their count.
 */
export interface StoredRecord {
  kind: 'output' | 'skip' | 'notice';
  ref: number;
  stream: OutputStream;
  seq: number;
  offset: number;
  atMs: number;
  /** The line it starts in starts with it. */
  lineStart: boolean;
  payload: Buffer;
}

export type ScannedRecord = StoredRecord | ({ kind: 'attempt' } & AttemptName);

export function encodeAttempt(name: AttemptName): Buffer[] {
  const head = Buffer.alloc(ATTEMPT_HEAD_BYTES);
  head.writeUInt8(KINDS.attempt, 0);
  head.writeUInt32BE(name.index, 1);
  head.writeUInt32BE(name.attempt, 5);
  const uid = Buffer.from(name.uid);
  head.writeUInt8(uid.length, 9);
  return frame([head, uid, Buffer.from(name.task)]);
}

export function encodeRecord(record: StoredRecord): Buffer[] {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt8(KINDS[record.kind], 0);
  const stderr = record.stream === 'stderr' ? STDERR : 0;
  head.writeUInt8(stderr | (record.lineStart ? LINE_START : 0), 1);
  head.writeUInt32BE(record.ref, 2);
  head.writeUIntBE(record.seq, 6, 6);
  head.writeUIntBE(record.offset, 12, 6);
  head.writeUIntBE(record.atMs, 18, 6);
  return frame([head, record.payload]);
}

function frame(body: Buffer[]): Buffer[] {
  const prefix = Buffer.allocUnsafe(PREFIX_BYTES);
  let length = 0;
  let sum = 0;
  for (const part of body) {
    length += part.length;
    sum = crc32(part, sum);
  }
  prefix.writeUInt32BE(length, 0);
  prefix.writeUInt32BE(sum, 4);
  return [prefix, ...body];
}

/** How many bytes a skip record stands for. */
export function skippedBytes(record: StoredRecord): number {
  return record.payload.readUIntBE(0, 6);
}

export function skipPayload(count: number): Buffer {
  const payload = Buffer.alloc(6);
  payload.writeUIntBE(count, 0, 6);
  return payload;
}

/** Reads on until the bytes end or a record is torn or damaged; `at` then says where. */
export function* scanRecords(
  bytes: Buffer,
  start = 0,
): Generator<{ record: ScannedRecord; at: number; length: number }, number> {
  let at = start;
  while (at + PREFIX_BYTES <= bytes.length) {
    const length = bytes.readUInt32BE(at);
    const bodyAt = at + PREFIX_BYTES;
    if (length === 0 || bodyAt + length > bytes.length) return at;
    const body = bytes.subarray(bodyAt, bodyAt + length);
    if (crc32(body) !== bytes.readUInt32BE(at + 4)) return at;
    const record = decodeBody(body);
    if (record === undefined) return at;
    yield { record, at, length: PREFIX_BYTES + length };
    at = bodyAt + length;
  }
  return at;
}

function decodeBody(body: Buffer): ScannedRecord | undefined {
  const kind = body[0];
  if (kind === KINDS.attempt) {
    if (body.length < ATTEMPT_HEAD_BYTES) return undefined;
    const taskAt = ATTEMPT_HEAD_BYTES + body.readUInt8(9);
    return {
      kind: 'attempt',
      index: body.readUInt32BE(1),
      attempt: body.readUInt32BE(5),
      uid: body.toString('utf8', ATTEMPT_HEAD_BYTES, taskAt),
      task: body.toString('utf8', taskAt),
    };
  }
  const name = kind === KINDS.output ? 'output' : kind === KINDS.skip ? 'skip' : 'notice';
  if (kind !== KINDS[name] || body.length < HEAD_BYTES) return undefined;
  const flags = body.readUInt8(1);
  return {
    kind: name,
    stream: (flags & STDERR) === 0 ? 'stdout' : 'stderr',
    lineStart: (flags & LINE_START) !== 0,
    ref: body.readUInt32BE(2),
    seq: body.readUIntBE(6, 6),
    offset: body.readUIntBE(12, 6),
    atMs: body.readUIntBE(18, 6),
    payload: body.subarray(HEAD_BYTES),
  };
}
