/** Cursors: they come back as they went, and nothing else is one. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutPage, decodeNumbers, decodeText, encodeCursor } from './cursors.ts';

test('a page knows whether there is more', () => {
  const position = (last: number) => [last];
  expect(cutPage([1, 2, 3], 2, position)).toEqual({
    items: [1, 2],
    nextCursor: encodeCursor([2]),
  });
  expect(cutPage([1, 2], 2, position)).toEqual({ items: [1, 2], nextCursor: null });
  expect(cutPage([], 2, position)).toEqual({ items: [], nextCursor: null });
});

test('positions come back as they went', () => {
  const numbers = fc.array(fc.maxSafeInteger(), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(numbers, fc.string(), (position, text) => {
      expect(
        decodeNumbers(
          encodeCursor(position),
          position.map(() => 0),
        ),
      ).toEqual(position);
      expect(decodeText(encodeCursor([text]))).toBe(text);
      expect(encodeCursor(position)).toMatch(/^[\w-]+$/);
    }),
  );
});

test('none is the beginning', () => {
  expect(decodeNumbers(undefined, [-1, -1])).toEqual([-1, -1]);
  expect(decodeText(undefined)).toBeUndefined();
});

describe('what is no cursor is refused', () => {
  const bad = {
    empty: '',
    junk: '!!!',
    nul: encodeCursor(['a\0b']),
    'half of one': encodeCursor([123456]).slice(0, 3),
    'an object': Buffer.from('{"a":1}').toString('base64url'),
    'too short a position': encodeCursor([1]),
    'too long a position': encodeCursor([1, 2, 3]),
    'a fraction': encodeCursor([1.5, 2]),
    'a number beyond all numbers': Buffer.from('[1e400,1]').toString('base64url'),
    texts: encodeCursor(['1', '2']),
    nothing: Buffer.from('[]').toString('base64url'),
  };
  test.each(Object.entries(bad))('%s', (_name, cursor) => {
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('not a cursor') };
    expect(() => decodeNumbers(cursor, [0, 0])).toThrow(expect.objectContaining(refusal));
    if (cursor !== bad.texts) {
      expect(() => decodeText(cursor)).toThrow(expect.objectContaining(refusal));
    }
  });

  test('a huge one is not repeated at length', () => {
    expect(() => decodeText('x'.repeat(100_000))).toThrow(/^.{1,120}$/);
  });
});
