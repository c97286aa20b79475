/** Secrets in output: hidden wherever they are cut, with every offset as it was. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hide, masksOf, uncutLength } from './masks.ts';

const masks = (...secrets: string[]): Buffer[] => masksOf(secrets).map((mask) => Buffer.from(mask));

/** As the spool does: reads pieces, sends what is not cut, keeps the rest for the next piece. */
function sendInPieces(text: Buffer, hidden: Buffer[], pieces: number[]): string {
  let sent = '';
  let from = 0;
  let read = 0;
  const send = (isEnd: boolean): void => {
    const piece = Buffer.from(text.subarray(from, read));
    const length = isEnd ? piece.length : uncutLength(piece, hidden);
    hide(piece.subarray(0, length), hidden);
    sent += piece.toString('utf8', 0, length);
    from += length;
  };
  for (const more of pieces) {
    read = Math.min(text.length, read + more);
    send(false);
  }
  read = text.length;
  send(true);
  return sent;
}

test('a secret is hidden, however the output is cut into pieces', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('hunter2!', 'hunt', 'x', '\n', 'hunter2')),
      fc.array(fc.integer({ min: 1, max: 9 })),
      (words, pieces) => {
        const text = words.join('');
        const sent = sendInPieces(Buffer.from(text), masks('hunter2!'), pieces);
        expect(sent).toBe(text.replaceAll('hunter2!', '********'));
      },
    ),
  );
});

test('a key of several lines is hidden line by line; short lines are not', () => {
  const output = Buffer.from('BEGIN KEY\nabcdefgh\nab\n');
  hide(output, masks('BEGIN KEY\nabcdefgh\nab'));
  expect(output.toString()).toBe(
    '*********\n********\nab\n'.replace('*********\n********\nab', '*'.repeat(21)),
  );
  const line = Buffer.from('> abcdefgh ab');
  hide(line, masks('BEGIN KEY\nabcdefgh\nab'));
  expect(line.toString()).toBe('> ******** ab');
});

test('what is too short to be a secret is left alone', () => {
  expect(masksOf(['12345', '', 'longer than six'])).toEqual(['longer than six']);
});
