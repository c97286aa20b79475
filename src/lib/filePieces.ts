/** Reads a file in large pieces: the next one is read while the last one is used. */
import { type FileHandle, open } from 'node:fs/promises';

/** Large enough that asking costs nothing; two of them still fit a processor's cache. */
const PIECE_BYTES = 1024 * 1024;

/**
 * A piece is good until the next one is asked for: then its memory, which is shared, is used again.
 * All but the last are PIECE_BYTES long.
 */
export async function* filePieces(
  path: string,
  { start, end }: { start: number; end: number } = { start: 0, end: Number.POSITIVE_INFINITY },
): AsyncGenerator<Uint8Array> {
  const file = await open(path, 'r');
  let reading: Promise<Uint8Array> | undefined;
  try {
    // One byte more than it has, so that a small file is read and its end is seen at once.
    const { size } = await file.stat();
    const pieceBytes = Math.min(Math.min(size, end + 1) - start + 1, PIECE_BYTES);
    const memory: Uint8Array[] = [];
    let at = start;
    const readNext = (index: number): Promise<Uint8Array> => {
      const room = (memory[index] ??= shared(pieceBytes));
      const piece = fill(file, room.subarray(0, Math.min(pieceBytes, end + 1 - at)), at);
      at += pieceBytes;
      return piece;
    };
    reading = readNext(0);
    for (let next = 1; ; next = 1 - next) {
      const piece = await reading;
      const isLast = piece.length < pieceBytes;
      if (!isLast) reading = readNext(next);
      if (piece.length > 0) yield piece;
      if (isLast) return;
    }
  } finally {
    // Nothing may be written to memory, or read from a number, that belongs to others by then.
    await reading?.catch(() => {});
    await file.close();
  }
}

function shared(bytes: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(bytes));
}

/** Less than asked for only at the end. */
async function fill(file: FileHandle, piece: Uint8Array, at: number): Promise<Uint8Array> {
  let filled = 0;
  while (filled < piece.length) {
    const left = piece.length - filled;
    const { bytesRead } = await file.read(piece, filled, left, at + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return piece.subarray(0, filled);
}
