/** Pieces whose memory is used again, as a stream that a socket may send. */
import { Readable } from 'node:stream';

/**
 * Only for a pipe into a socket. It holds nothing back (highWaterMark 0), so that the next piece is
 * asked for when the socket wants more; and a socket that was given more than its own mark, 64 KiB,
 * wants more only when all of it has been sent.
 */
export function pieceStream(pieces: AsyncIterator<Uint8Array>): Readable {
  return new Readable({
    highWaterMark: 0,
    read() {
      pieces.next().then(
        ({ done, value }) => this.push(done ? null : value),
        (error: Error) => this.destroy(error),
      );
    },
    destroy(error, done) {
      const returned = pieces.return?.() ?? Promise.resolve();
      returned.then(
        () => done(error),
        (late: Error) => done(error ?? late),
      );
    },
  });
}
