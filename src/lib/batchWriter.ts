/**
 * Writes chunks to a file in large pieces: one write is under way while the next piece is gathered,
 * so that whoever makes the chunks and the disk work at the same time, and no more than two pieces
 * are held.
 */
import type { FileHandle } from 'node:fs/promises';

/** What is gathered before one write: larger gains nothing. */
const PIECE_BYTES = 1024 * 1024;

export class BatchWriter {
  readonly #file: FileHandle;
  #gathered: Uint8Array[] = [];
  #bytes = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Undefined while it only gathers. Chunks must not change afterwards. */
  add(chunk: Uint8Array): Promise<void> | undefined {
    this.#gathered.push(chunk);
    this.#bytes += chunk.length;
    return this.#bytes < PIECE_BYTES ? undefined : this.#next();
  }

  /** Resolves when everything that was added is with the system; the disk is `file.sync()`. */
  async flush(): Promise<void> {
    await this.#next();
    await this.#writing;
  }

  /** The file may be closed after this; what was not written stays unwritten. */
  async settle(): Promise<void> {
    await this.#writing.catch(() => {});
  }

  async #next(): Promise<void> {
    const piece = this.#gathered;
    this.#gathered = [];
    this.#bytes = 0;
    await this.#writing;
    this.#writing = writeAll(this.#file, piece);
    // Looked at before the next write; until then it may fail with nobody waiting.
    this.#writing.catch(() => {});
  }
}

/** A write may take less than it was given, just before the disk is full for instance. */
async function writeAll(file: FileHandle, piece: Uint8Array[]): Promise<void> {
  let left = piece;
  while (left.length > 0) {
    const { bytesWritten } = await file.writev(left);
    left = after(left, bytesWritten);
  }
}

function after(piece: Uint8Array[], bytes: number): Uint8Array[] {
  let skip = bytes;
  const left: Uint8Array[] = [];
  for (const chunk of piece) {
    if (skip < chunk.length) left.push(chunk.subarray(skip));
    skip = Math.max(0, skip - chunk.length);
  }
  return left;
}
