/** Which bytes the last lines are. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { walkTail, type TailRecord } from './tail.ts';

interface Piece {
  stream: string;
  text: string;
}

/** Marks line starts as the store does. */
function recordsOf(pieces: Piece[]): TailRecord[] {
  const inLine = new Map<string, boolean>();
  return pieces.map(({ stream, text }) => {
    const lineStart = !(inLine.get(stream) ?? false);
    inLine.set(stream, !text.endsWith('\n'));
    return { stream, lineStart, payload: Buffer.from(text) };
  });
}

function tail(pieces: Piece[], lines: number): string[] {
  const walk = walkTail(lines);
  const taken: string[] = [];
  for (const record of recordsOf(pieces).toReversed()) {
    if (walk.done) break;
    const start = walk.take(record);
    if (start !== undefined) {
      taken.push(`${record.stream}:${record.payload.subarray(start).toString()}`);
    }
  }
  return taken.toReversed();
}

/** The same, slowly: every byte belongs to a line; lines are ordered by where they end. */
function slowTail(pieces: Piece[], lines: number): string[] {
  const open = new Map<string, number>();
  const endOf: number[] = [];
  let count = 0;
  const lineOf = pieces.map(({ stream, text }, place) =>
    text.split('').map((character) => {
      const line = open.get(stream) ?? count++;
      open.set(stream, line);
      endOf[line] = place;
      if (character === '\n') open.delete(stream);
      return line;
    }),
  );
  const order = endOf.map((end, line) => ({ end, line, at: lineOf[end]?.lastIndexOf(line) ?? 0 }));
  const sorted = order.toSorted((a, b) => a.end - b.end || a.at - b.at);
  const wanted = new Set(sorted.slice(Math.max(0, sorted.length - lines)).map(({ line }) => line));
  return pieces.flatMap(({ stream, text }, place) => {
    const kept = text
      .split('')
      .filter((_, at) => wanted.has(lineOf[place]?.[at] ?? -1))
      .join('');
    return kept === '' ? [] : [`${stream}:${kept}`];
  });
}

const a = (text: string): Piece => ({ stream: 'a', text });
const b = (text: string): Piece => ({ stream: 'b', text });

describe('the last lines', () => {
  it('are exactly as many, also from the middle of a record', () => {
    expect(tail([a('1\n2\n3\n')], 2)).toEqual(['a:2\n3\n']);
    expect(tail([a('1\n'), a('2\n3')], 1)).toEqual(['a:3']);
    expect(tail([a('1\n2\n')], 9)).toEqual(['a:1\n2\n']);
    expect(tail([a('1\n2\n')], 0)).toEqual([]);
  });

  it('include the beginning of a line that others interrupted, but not the others', () => {
    expect(tail([a('x\nhe'), b('no\n'), a('llo\n')], 1)).toEqual(['a:he', 'a:llo\n']);
    expect(tail([a('he'), b('no\n'), a('llo\n')], 2)).toEqual(['a:he', 'b:no\n', 'a:llo\n']);
  });

  it('agree with counting every byte', () => {
    const piece = fc.record({
      stream: fc.constantFrom('a', 'b', 'c'),
      text: fc.string({ unit: fc.constantFrom('x', '\n'), minLength: 1, maxLength: 6 }),
    });
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.nat(8), (pieces, lines) => {
        expect(tail(pieces, lines)).toEqual(slowTail(pieces, lines));
      }),
      { numRuns: 1000 },
    );
  });
});
