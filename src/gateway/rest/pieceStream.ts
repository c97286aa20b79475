/** Pieces whose memory is used again, as a stream that a socket may send. */
import { Readable } from 'node:stream';

/**
 * Only for a pipe into a socket. It holds nothing back (highWaterMark 0), so that the next piece is
 * asked for when the socket wants more; and a socket that was given more than its own mark, 64 KiB,
 * wants more only when all of it has been sent.
 */
export function pieceStream(pieces: AsyncIterator<Uint8Array>): Readable {
  const stream = new Readable({ highWaterMark: 0, read: () => void pushNext(stream, pieces) });
  stream.once('close', () => void end(pieces));
  return stream;
}

async function pushNext(stream: Readable, pieces: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    const { done, value } = await pieces.next();
    stream.push(done ? null : value);
  } catch (error) {
    stream.destroy(error as Error);
  }
}

async function end(pieces: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    await pieces.return?.();
  } catch {
    // All that was wanted was sent, or nobody is there any more to be told.
  }
}
