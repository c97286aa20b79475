/** Frames survive the wire, and whatever is not a frame is refused with a reason. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ERRORS, type ErrorCode } from '../../lib/errors.ts';
import { ByteQueue } from './byteQueue.ts';
import { decodeFrame, encodeFrame, FRAME_HEADER_BYTES, type Frame } from './frames.ts';
import { TUNNEL_LIMITS as limits } from './limits.ts';

const stream = fc.integer({ min: 1, max: 2 ** 32 - 1 });
const payloadBytes = limits.frameBytes - FRAME_HEADER_BYTES;
const frames: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({
    type: fc.constant('OPEN' as const),
    stream,
    header: fc.record({
      kind: fc.string({ minLength: 1, maxLength: 64, unit: 'grapheme-ascii' }),
      attemptUid: fc.string({ minLength: 1, maxLength: 200, unit: 'grapheme-ascii' }),
      port: fc.integer(),
    }),
  }),
  fc.record({
    type: fc.constant('DATA' as const),
    stream,
    bytes: fc.uint8Array({ minLength: 1, maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
  }),
  fc.record({
    type: fc.constant('WINDOW' as const),
    stream,
    bytes: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  }),
  fc.record({ type: fc.constant('END' as const), stream }),
  fc.record({
    type: fc.constant('RESET' as const),
    stream,
    code: fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[])),
    message: fc.string({ maxLength: 300, unit: 'binary' }),
  }),
);

test('every frame comes back as it was', () => {
  fc.assert(
    fc.property(frames, (frame) => {
      expect(decodeFrame(encodeFrame(frame, limits), limits)).toEqual(frame);
    }),
  );
});

test('random bytes are a frame or refused, never a crash', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      try {
        decodeFrame(bytes, limits);
      } catch (error) {
        expect(error).toMatchObject({ name: 'DroverError', code: 'MALFORMED_BODY' });
      }
    }),
    { numRuns: 2000 },
  );
});

test('a frame may have exactly frameBytes and no more', () => {
  const full = encodeFrame({ type: 'DATA', stream: 1, bytes: Buffer.alloc(payloadBytes) }, limits);
  expect(full.length).toBe(limits.frameBytes);
  expect(decodeFrame(full, limits).type).toBe('DATA');
  const over = { type: 'DATA' as const, stream: 1, bytes: Buffer.alloc(payloadBytes + 1) };
  expect(() => encodeFrame(over, limits)).toThrow('too large');
  expect(() => decodeFrame(Buffer.concat([full, Buffer.alloc(1)]), limits)).toThrow('malformed');
});

test('a header may have headerBytes and no more, and a reset always fits', () => {
  const header = { kind: 'exec', attemptUid: 'a', note: 'x'.repeat(limits.headerBytes) };
  expect(() => encodeFrame({ type: 'OPEN', stream: 1, header }, limits)).toThrow('over the limit');
  const forged = Buffer.concat([Buffer.from([1, 0, 0, 0, 1]), Buffer.from(JSON.stringify(header))]);
  expect(() => decodeFrame(forged, limits)).toThrow('malformed tunnel frame: OPEN of');
  const message = '\u0001'.repeat(5000);
  const reset = encodeFrame({ type: 'RESET', stream: 1, code: 'INTERNAL', message }, limits);
  expect(decodeFrame(reset, limits)).toMatchObject({ code: 'INTERNAL' });
});

test('malformed frames say what is wrong', () => {
  const cases: [number[], string][] = [
    [[2, 0, 0], 'no frame'],
    [[9, 0, 0, 0, 1], 'frame type 9'],
    [[2, 0, 0, 0, 0, 1], 'stream 0'],
    [[2, 0, 0, 0, 1], 'DATA without bytes'],
    [[3, 0, 0, 0, 1, 0, 0, 0, 0], 'WINDOW of nothing'],
    [[3, 0, 0, 0, 1, 0], 'WINDOW of 1 bytes'],
    [[4, 0, 0, 0, 1, 0], 'END with bytes'],
    [[1, 0, 0, 0, 1, 123], 'OPEN without JSON'],
    [[1, 0, 0, 0, 1, 123, 125], 'OPEN with other keys'],
  ];
  for (const [bytes, message] of cases) {
    expect(() => decodeFrame(Uint8Array.from(bytes), limits), message).toThrow(message);
  }
});

test('a code of a newer peer is read as an internal error', () => {
  const json = Buffer.from('{"code":"CONSTRUCTOR_ON_FIRE","message":"m"}');
  const frame = Buffer.concat([Buffer.from([5, 0, 0, 0, 1]), json]);
  expect(decodeFrame(frame, limits)).toMatchObject({ code: 'INTERNAL', message: 'm' });
});

test('the byte queue keeps order and gathers small pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 6000 }), { maxLength: 50 }), (pieces) => {
      const queue = new ByteQueue();
      for (const piece of pieces) queue.push(piece);
      const out: Uint8Array[] = [];
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) out.push(next);
      expect(Buffer.concat(out).equals(Buffer.concat(pieces))).toBe(true);
      expect(queue.byteLength).toBe(0);
    }),
  );
  const queue = new ByteQueue();
  for (let i = 0; i < 100_000; i++) queue.push(Uint8Array.of(i));
  expect(queue.pieceCount).toBeLessThan(30);
});
