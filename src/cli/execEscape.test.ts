/** The escape leaves, and everything else reaches the command unchanged. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { escapeFilter } from './execEscape.ts';

function typeAll(pieces: string[]): { sent: string; isLeaving: boolean } {
  const filter = escapeFilter();
  let sent = '';
  for (const piece of pieces) {
    const { bytes, isLeaving } = filter(Buffer.from(piece));
    sent += bytes.toString();
    if (isLeaving) return { sent, isLeaving };
  }
  return { sent, isLeaving: false };
}

test.each([
  [['~.'], '', true],
  [['ls\r', '~', '.'], 'ls\r', true],
  [['ls ~.\r'], 'ls ~.\r', false],
  [['~~.\r'], '~.\r', false],
  [['~/bin\r'], '~/bin\r', false],
  [['\r~\r~.'], '\r~\r', true],
])('typing %j sends %j', (pieces, sent, isLeaving) => {
  expect(typeAll(pieces)).toEqual({ sent, isLeaving });
});

test('without a tilde everything passes, however it is cut', () => {
  const text = fc.string().filter((piece) => !piece.includes('~'));
  fc.assert(
    fc.property(fc.array(text), (pieces) => {
      expect(typeAll(pieces)).toEqual({ sent: pieces.join(''), isLeaving: false });
    }),
  );
});
