/** Log frames there and back, and what is refused. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DroverError } from '../lib/errors.ts';
import type { LogChunk } from './agent.ts';
import { decodeLogFrames, encodeLogFrames, LOG_FRAME_LIMITS } from './logFrames.ts';

const MAX_U48 = 2 ** 48 - 1;
const chunk: fc.Arbitrary<LogChunk> = fc.record({
  uid: fc.stringMatching(/^[a-z0-9]{1,40}$/),
  stream: fc.constantFrom('stdout', 'stderr'),
  offset: fc.integer({ min: 0, max: MAX_U48 }),
  atMs: fc.integer({ min: 0, max: MAX_U48 }),
  bytes: fc.uint8Array({ maxLength: 300 }),
});

function refusal(body: Uint8Array): string {
  try {
    decodeLogFrames(body);
  } catch (error) {
    expect(error).toBeInstanceOf(DroverError);
    expect((error as DroverError).code).toBe('MALFORMED_BODY');
    return (error as DroverError).message;
  }
  return '';
}

const one = (bytes: Uint8Array, uid = 'a1'): LogChunk => ({
  uid,
  stream: 'stderr',
  offset: 7,
  atMs: 9,
  bytes,
});

describe('log frames', () => {
  it('come back as they were sent', () => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 20 }), (chunks) => {
        const back = decodeLogFrames(encodeLogFrames(chunks));
        expect(back.map((c) => ({ ...c, bytes: [...c.bytes] }))).toEqual(
          chunks.map((c) => ({ ...c, bytes: [...c.bytes] })),
        );
      }),
    );
  });

  it('are views of the body, not copies', () => {
    const body = encodeLogFrames([one(Buffer.from('hello'))]);
    expect(decodeLogFrames(body)[0]?.bytes.buffer).toBe(body.buffer);
  });

  it('are refused when cut anywhere, and when anything follows', () => {
    const body = encodeLogFrames([one(Buffer.from('hello')), one(Buffer.from('you'))]);
    for (let length = 0; length < body.length; length++) {
      expect(refusal(body.subarray(0, length))).not.toBe('');
    }
    expect(refusal(Buffer.concat([body, Buffer.of(0)]))).toContain('after its last frame');
  });

  it('never fail otherwise than as a malformed body, whatever the bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void refusal(bytes)));
    const body = encodeLogFrames([one(Buffer.from('hello'))]);
    fc.assert(
      fc.property(fc.nat(body.length - 1), fc.nat(255), (at, value) => {
        const changed = Buffer.from(body);
        changed[at] = value;
        refusal(changed);
      }),
    );
  });

  it('hold to their limits', () => {
    const { bodyBytes, chunkBytes, frames, uidBytes } = LOG_FRAME_LIMITS;
    expect(refusal(encodeLogFrames([one(Buffer.alloc(chunkBytes))]))).toBe('');
    expect(refusal(encodeLogFrames([one(Buffer.alloc(chunkBytes + 1))]))).toContain('at most');
    expect(refusal(Buffer.alloc(bodyBytes + 1))).toContain('the limit is');
    const many = Array.from({ length: frames + 1 }, () => one(Buffer.alloc(0)));
    expect(refusal(encodeLogFrames(many))).toContain('frames');
    expect(refusal(encodeLogFrames([one(Buffer.alloc(0), 'x'.repeat(uidBytes + 1))]))).toContain(
      'too long an id',
    );
    expect(refusal(encodeLogFrames([one(Buffer.alloc(0), 'a b')]))).toContain('no valid id');
    expect(refusal(Buffer.from([2, 0, 0, 0, 0]))).toContain('version');
  });
});
