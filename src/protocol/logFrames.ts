/**
 * The body of AppendLogs: log chunks as length-prefixed binary frames, so that output bytes are
 * neither escaped nor copied on arrival. All numbers are big endian.
 *
 *   body  = version u8, count u32, frame*
 *   frame = uidLength u8, stream u8, offset u48, atMs u48, byteLength u32, uid, bytes
 */
import { DroverError } from '../lib/errors.ts';
import { LOG_STREAMS, type LogChunk } from './agent.ts';

export const LOG_FRAMES_CONTENT_TYPE = 'application/octet-stream';

/** A gateway accepts a body of `bodyBytes`; agents stay below all of these. */
export const LOG_FRAME_LIMITS = {
  /** Large enough that one fsync pays for many attempts, small enough to hold a few of. */
  bodyBytes: 8 * 1024 * 1024,
  frames: 4096,
  chunkBytes: 1024 * 1024,
  uidBytes: 128,
} as const;

const VERSION = 1;
const HEAD_BYTES = 5;
const FRAME_HEAD_BYTES = 18;
/** Ids are plain ASCII: what else arrives here was not made by an agent. */
const UID = /^[\x21-\x7e]+$/;

/** What a chunk takes in a body, to stay below the limit while filling one. */
export function frameBytes(uid: string, byteLength: number): number {
  return FRAME_HEAD_BYTES + uid.length + byteLength;
}

export function encodeLogFrames(chunks: readonly LogChunk[]): Uint8Array {
  let size = HEAD_BYTES;
  for (const chunk of chunks) size += frameBytes(chunk.uid, chunk.bytes.length);
  const body = Buffer.allocUnsafe(size);
  let at = writeLogHead(body, chunks.length);
  for (const chunk of chunks) {
    at = writeFrameHead(body, at, chunk);
    body.set(chunk.bytes, at);
    at += chunk.bytes.length;
  }
  return body;
}

/** For who fills a body in place: the head, then each frame's head before its bytes. */
export function writeLogHead(body: Buffer, count: number): number {
  body.writeUInt8(VERSION, 0);
  body.writeUInt32BE(count, 1);
  return HEAD_BYTES;
}

/** Returns where the chunk's bytes belong. */
export function writeFrameHead(body: Buffer, at: number, chunk: LogChunk): number {
  body.writeUInt8(chunk.uid.length, at);
  body.writeUInt8(LOG_STREAMS.indexOf(chunk.stream), at + 1);
  body.writeUIntBE(chunk.offset, at + 2, 6);
  body.writeUIntBE(chunk.atMs, at + 8, 6);
  body.writeUInt32BE(chunk.bytes.length, at + 14);
  return at + FRAME_HEAD_BYTES + body.write(chunk.uid, at + FRAME_HEAD_BYTES, 'latin1');
}

/** The chunks' bytes are views into `body`: keep it unchanged as long as they are in use. */
export function decodeLogFrames(data: Uint8Array): LogChunk[] {
  const body = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (body.length > LOG_FRAME_LIMITS.bodyBytes) {
    throw malformed(`is ${body.length} bytes, the limit is ${LOG_FRAME_LIMITS.bodyBytes}`);
  }
  if (body.length < HEAD_BYTES) throw malformed('is shorter than its header');
  if (body[0] !== VERSION) throw malformed(`has version ${body[0]}, known is ${VERSION}`);
  const count = body.readUInt32BE(1);
  if (count > LOG_FRAME_LIMITS.frames) {
    throw malformed(`has ${count} frames, the limit is ${LOG_FRAME_LIMITS.frames}`);
  }
  const chunks: LogChunk[] = [];
  let at = HEAD_BYTES;
  for (let n = 0; n < count; n++) {
    const chunk = readFrame(body, at, n);
    chunks.push(chunk);
    at += frameBytes(chunk.uid, chunk.bytes.length);
  }
  if (at !== body.length) throw malformed(`has ${body.length - at} bytes after its last frame`);
  return chunks;
}

function readFrame(body: Buffer, at: number, n: number): LogChunk {
  if (at + FRAME_HEAD_BYTES > body.length) throw malformed(`ends inside frame ${n}`);
  const uidLength = body.readUInt8(at);
  const stream = LOG_STREAMS[body.readUInt8(at + 1)];
  const byteLength = body.readUInt32BE(at + 14);
  if (stream === undefined) throw malformed(`names an unknown stream in frame ${n}`);
  if (uidLength > LOG_FRAME_LIMITS.uidBytes) throw malformed(`has too long an id in frame ${n}`);
  if (byteLength > LOG_FRAME_LIMITS.chunkBytes) {
    throw malformed(
      `has ${byteLength} bytes in frame ${n}, at most ${LOG_FRAME_LIMITS.chunkBytes}`,
    );
  }
  const uidAt = at + FRAME_HEAD_BYTES;
  const bytesAt = uidAt + uidLength;
  if (bytesAt + byteLength > body.length) throw malformed(`ends inside frame ${n}`);
  const uid = body.toString('latin1', uidAt, bytesAt);
  if (!UID.test(uid)) throw malformed(`has no valid id in frame ${n}`);
  return {
    uid,
    stream,
    offset: body.readUIntBE(at + 2, 6),
    atMs: body.readUIntBE(at + 8, 6),
    bytes: body.subarray(bytesAt, bytesAt + byteLength),
  };
}

function malformed(what: string): DroverError {
  return new DroverError('MALFORMED_BODY', `the log frames' body ${what}`);
}
