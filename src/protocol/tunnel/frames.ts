/**
 * The five frames of a tunnel. A frame is one binary message: type (1 byte), stream id (4 bytes,
 * big endian), payload. OPEN and RESET carry JSON, DATA bytes, WINDOW the bytes granted (4 bytes),
 * END nothing.
 */
import { z } from 'zod';
import { DroverError, ERRORS, type ErrorCode } from '../../lib/errors.ts';
import type { TunnelLimits } from './limits.ts';

export const FRAME_HEADER_BYTES = 5;
const TYPES = { OPEN: 1, DATA: 2, WINDOW: 3, END: 4, RESET: 5 } as const;
/**
 * A reset's message is for a person; longer ones are cut so that the header fits, escaped or not.
 */
const RESET_MESSAGE_CHARACTERS = 600;

/** What a stream is for. Further keys are the kind's own and reach its handler. */
const openHeader = z.looseObject({
  kind: z.string().min(1).max(64),
  attemptUid: z.string().min(1).max(256),
});
export type OpenHeader = z.infer<typeof openHeader>;

const resetHeader = z.looseObject({ code: z.string().max(64), message: z.string() });

export type Frame =
  | { type: 'OPEN'; stream: number; header: OpenHeader }
  | { type: 'DATA'; stream: number; bytes: Uint8Array }
  | { type: 'WINDOW'; stream: number; bytes: number }
  | { type: 'END'; stream: number }
  | { type: 'RESET'; stream: number; code: ErrorCode; message: string };

export function encodeFrame(frame: Frame, limits: TunnelLimits): Buffer {
  const payload = payloadOf(frame, limits);
  const bytes = cutFromSlab(FRAME_HEADER_BYTES + payload.length);
  if (bytes.length > limits.frameBytes) {
    throw new DroverError('BODY_TOO_LARGE', `a tunnel frame of ${bytes.length} bytes is too large`);
  }
  bytes[0] = TYPES[frame.type];
  bytes.writeUInt32BE(frame.stream, 1);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

/**
 * Frames live shortly and there are many: cut from large pieces they cost the collector a fraction
 * of what a buffer each does. A part that was cut off is never used again.
 */
const SLAB_BYTES = 512 * 1024;
let slab = Buffer.alloc(0);
let slabUsed = 0;

function cutFromSlab(length: number): Buffer {
  if (length > SLAB_BYTES) return Buffer.allocUnsafe(length);
  if (slabUsed + length > slab.length) [slab, slabUsed] = [Buffer.allocUnsafeSlow(SLAB_BYTES), 0];
  slabUsed += length;
  return slab.subarray(slabUsed - length, slabUsed);
}

function payloadOf(frame: Frame, limits: TunnelLimits): Uint8Array {
  if (frame.type === 'DATA') return frame.bytes;
  if (frame.type === 'OPEN') return jsonPayload(frame.header, limits);
  if (frame.type === 'END') return new Uint8Array(0);
  if (frame.type === 'RESET') {
    const message = frame.message.slice(0, RESET_MESSAGE_CHARACTERS);
    return jsonPayload({ code: frame.code, message }, limits);
  }
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(frame.bytes);
  return payload;
}

function jsonPayload(value: object, limits: TunnelLimits): Buffer {
  const payload = Buffer.from(JSON.stringify(value));
  if (payload.length > limits.headerBytes) {
    throw new DroverError(
      'BODY_TOO_LARGE',
      `a tunnel header of ${payload.length} bytes is over the limit of ${limits.headerBytes}`,
    );
  }
  return payload;
}

/** Throws MALFORMED_BODY for whatever is not exactly a frame; the tunnel then ends. */
export function decodeFrame(message: Uint8Array, limits: TunnelLimits): Frame {
  if (message.length < FRAME_HEADER_BYTES) throw malformed(`${message.length} bytes are no frame`);
  if (message.length > limits.frameBytes) throw malformed(`a frame of ${message.length} bytes`);
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const stream = bytes.readUInt32BE(1);
  const payload = bytes.subarray(FRAME_HEADER_BYTES);
  if (stream === 0) throw malformed('stream 0');
  switch (bytes[0]) {
    case TYPES.OPEN:
      return { type: 'OPEN', stream, header: parseJson(payload, openHeader, limits, 'OPEN') };
    case TYPES.DATA:
      if (payload.length === 0) throw malformed('DATA without bytes');
      return { type: 'DATA', stream, bytes: payload };
    case TYPES.WINDOW:
      return { type: 'WINDOW', stream, bytes: windowBytes(payload) };
    case TYPES.END:
      if (payload.length > 0) throw malformed('END with bytes');
      return { type: 'END', stream };
    case TYPES.RESET: {
      const { code, message } = parseJson(payload, resetHeader, limits, 'RESET');
      return { type: 'RESET', stream, code: knownCode(code), message };
    }
    default:
      throw malformed(`frame type ${bytes[0]}`);
  }
}

function windowBytes(payload: Buffer): number {
  if (payload.length !== 4) throw malformed(`WINDOW of ${payload.length} bytes`);
  const granted = payload.readUInt32BE();
  if (granted === 0) throw malformed('WINDOW of nothing');
  return granted;
}

function parseJson<Shape>(
  payload: Buffer,
  schema: z.ZodType<Shape>,
  limits: TunnelLimits,
  what: string,
): Shape {
  if (payload.length > limits.headerBytes) throw malformed(`${what} of ${payload.length} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(payload.toString('utf8'));
  } catch (cause) {
    throw malformed(`${what} without JSON`, cause);
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw malformed(`${what} with other keys`, parsed.error);
  return parsed.data;
}

/** A newer peer may know codes that we do not. */
function knownCode(code: string): ErrorCode {
  return Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : 'INTERNAL';
}

function malformed(what: string, cause?: unknown): DroverError {
  return new DroverError('MALFORMED_BODY', `malformed tunnel frame: ${what}`, { cause });
}
