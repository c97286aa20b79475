/**
 * Bytes received and not yet read. Small pieces are gathered into one buffer, so that a peer that
 * sends a window byte by byte costs the window and not an object for each byte.
 */

const GATHER_BYTES = 4 * 1024;

interface Piece {
  /** May be larger than `length`: the rest takes further small pieces. */
  buffer: Uint8Array;
  length: number;
}

export class ByteQueue {
  byteLength = 0;
  #pieces: Piece[] = [];

  get pieceCount(): number {
    return this.#pieces.length;
  }

  push(bytes: Uint8Array): void {
    this.byteLength += bytes.length;
    if (bytes.length >= GATHER_BYTES) {
      this.#pieces.push({ buffer: bytes, length: bytes.length });
      return;
    }
    let last = this.#pieces.at(-1);
    if (last === undefined || last.length + bytes.length > last.buffer.length) {
      // The first small piece is kept as it is: with a prompt reader nothing is ever copied.
      if (last === undefined) {
        this.#pieces.push({ buffer: bytes, length: bytes.length });
        return;
      }
      last = { buffer: new Uint8Array(GATHER_BYTES), length: 0 };
      this.#pieces.push(last);
    }
    last.buffer.set(bytes, last.length);
    last.length += bytes.length;
  }

  shift(): Uint8Array | undefined {
    const piece = this.#pieces.shift();
    if (piece === undefined) return undefined;
    this.byteLength -= piece.length;
    return piece.buffer.subarray(0, piece.length);
  }

  clear(): void {
    this.#pieces = [];
    this.byteLength = 0;
  }
}
