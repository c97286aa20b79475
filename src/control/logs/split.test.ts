/** How a run of output is cut into records. */
import { isUtf8 } from 'node:buffer';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderBytes, splitRecords } from './split.ts';

const split = (text: string, limit: number): string[] =>
  splitRecords(Buffer.from(text), limit).map((piece) => piece.toString());

describe('records of a run of output', () => {
  it('are whole lines where possible, the unfinished one apart', () => {
    expect(split('one\ntwo\nthr', 100)).toEqual(['one\ntwo\n', 'thr']);
    expect(split('one\ntwo\nthree\n', 9)).toEqual(['one\ntwo\n', 'three\n']);
    expect(split('\n\n', 100)).toEqual(['\n\n']);
  });

  it('split a line that is too long, between characters', () => {
    expect(split('abcdefgh\n', 4)).toEqual(['abcd', 'efgh', '\n']);
    expect(split('äöüß', 3)).toEqual(['ä', 'ö', 'ü', 'ß']);
    expect(split('🙂🙂', 7)).toEqual(['🙂', '🙂']);
  });

  it('never lose, add or reorder a byte, and stay below the limit', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 4, max: 64 }), (data, n) => {
        const pieces = splitRecords(Buffer.from(data), n);
        expect(Buffer.concat(pieces)).toEqual(Buffer.from(data));
        for (const piece of pieces) {
          expect(piece.length).toBeGreaterThan(0);
          expect(piece.length).toBeLessThanOrEqual(n);
        }
      }),
    );
  });

  it('keep text readable however it was cut before', () => {
    const unit = fc.constantFrom('a', 'é', '€', '🙂', '\n');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 60 }), fc.nat(200), (text, cut) => {
        const bytes = Buffer.from(text);
        const at = Math.min(cut, bytes.length);
        const pieces = [bytes.subarray(0, at), bytes.subarray(at)];
        const records = pieces.flatMap((piece) => splitRecords(piece, 16));
        // Only the one character that was cut may be shown as bytes.
        const broken = records.filter((record) => !isUtf8(record));
        expect(Buffer.concat(broken).length).toBeLessThanOrEqual(4);
      }),
    );
  });

  it('are shown as text or, when they are not UTF-8, as they are', () => {
    expect(renderBytes(Buffer.from('grün\0'))).toEqual({ text: 'grün\0' });
    expect(renderBytes(Buffer.from('\ufeffx'))).toEqual({ text: '\ufeffx' });
    expect(renderBytes(Buffer.of(0xff, 0xfe))).toEqual({ base64: '//4=' });
  });
});
