/**
 * Writes chunks to a file and hashes them: one piece is gathered while those before it are hashed
 * and written. Its few pieces are used again and again, so memory does not grow with the content,
 * and large content goes past the system's cache, which would have to push out what others read
 * only to hold what nobody may ever read again here; that is half of what writing costs.
 */
import { constants, type FileHandle, open } from 'node:fs/promises';
import type { Hasher } from './hashThread.ts';

/** One write. Larger gains little; all of them together still fit a processor's cache. */
const PIECE_BYTES = 1024 * 1024;
/** One is gathered, one hashed, one written, and one more because they are not equally fast. */
const PIECES = 4;
/** Smaller content is left to the cache: it is soon written, and likely to be read soon. */
const DIRECT_FROM_BYTES = 16 * 1024 * 1024;
/** Past the cache, place and length are whole blocks; no disk of today has larger ones. */
const BLOCK_BYTES = 4096;
/** What WebAssembly counts memory in. */
const PAGE_BYTES = 65_536;

/** A part of JavaScript that the types of Node leave out. */
declare const WebAssembly: {
  Memory: new (limits: { initial: number; maximum: number; shared: true }) => {
    buffer: SharedArrayBuffer;
  };
};

interface Piece {
  bytes: Uint8Array;
  /** Until it is hashed and written. */
  busy: Promise<unknown> | undefined;
}

interface Options {
  hasher: Hasher;
  /** How long the file will be, as far as known. */
  size: number;
  /** Go on from here in a file that is there; left out, it must not be there. */
  position?: number;
}

export class HashingWriter {
  readonly #file: FileHandle;
  readonly #hasher: Hasher;
  readonly #isDirect: boolean;
  readonly #pieces: Piece[];
  readonly #pieceBytes: number;
  #position: number;
  #index = 0;
  #filled = 0;
  #writing: Promise<void> = Promise.resolve();

  static async open(path: string, options: Options): Promise<HashingWriter> {
    const { size, position } = options;
    const { O_WRONLY, O_CREAT, O_EXCL } = constants;
    const flags = O_WRONLY | O_CREAT | (position === undefined ? O_EXCL : 0);
    const isLarge = size - (position ?? 0) >= DIRECT_FROM_BYTES;
    if (!isLarge || (position ?? 0) % BLOCK_BYTES > 0) {
      return new HashingWriter(await open(path, flags, 0o600), options, plainPieces(size));
    }
    const pieces = alignedPieces();
    const direct = await openDirect(path, flags, position ?? 0, pieces[0]!.bytes);
    const file = direct ?? (await open(path, flags & ~O_EXCL, 0o600));
    return new HashingWriter(file, options, pieces, direct !== undefined);
  }

  private constructor(file: FileHandle, options: Options, pieces: Piece[], isDirect = false) {
    this.#file = file;
    this.#hasher = options.hasher;
    this.#position = options.position ?? 0;
    this.#pieces = pieces;
    this.#pieceBytes = pieces[0]!.bytes.length;
    this.#isDirect = isDirect;
  }

  /** Undefined while it only gathers. The chunk is the caller's again then, or when it resolves. */
  add(chunk: Uint8Array): Promise<void> | undefined {
    if (this.#filled + chunk.length >= this.#pieceBytes) return this.#addAll(chunk);
    this.#gather(chunk, 0);
    return undefined;
  }

  /** The hash of all, once everything is on disk. */
  async finish(): Promise<string> {
    if (this.#filled > 0) await this.#next();
    for (const { busy } of this.#pieces) await busy;
    // What a last piece was filled up with is no part of the content.
    if (this.#isDirect) await this.#file.truncate(this.#position);
    await this.#file.sync();
    return this.#hasher.digest();
  }

  /** What was not written stays unwritten. */
  async close(): Promise<void> {
    await this.#writing.catch(() => {});
    this.#hasher.drop();
    await this.#file.close();
  }

  /** As much as there is room for. By Buffer.copy: `set` into shared memory is slower. */
  #gather(chunk: Uint8Array, from: number): number {
    const source = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const copied = source.copy(this.#pieces[this.#index]!.bytes, this.#filled, from);
    this.#filled += copied;
    return copied;
  }

  async #addAll(chunk: Uint8Array): Promise<void> {
    for (let from = 0; from < chunk.length;) {
      from += this.#gather(chunk, from);
      if (this.#filled === this.#pieceBytes) await this.#next();
    }
  }

  /** Hands over the piece that is full, and waits until the next one is free. */
  async #next(): Promise<void> {
    const piece = this.#pieces[this.#index]!;
    const written = this.#isDirect ? wholeBlocks(this.#filled) : this.#filled;
    this.#writing = this.#write(piece.bytes.subarray(0, written), this.#position, this.#writing);
    const hashed = this.#hasher.update(piece.bytes.subarray(0, this.#filled));
    piece.busy = Promise.all([this.#writing, hashed]);
    // Looked at before the piece is used again; until then it may fail with nobody waiting.
    piece.busy.catch(() => {});
    this.#position += this.#filled;
    this.#filled = 0;
    this.#index = (this.#index + 1) % this.#pieces.length;
    await this.#pieces[this.#index]!.busy;
  }

  /** A write may take less than it was given, just before the disk is full for instance. */
  async #write(bytes: Uint8Array, position: number, before: Promise<void>): Promise<void> {
    await before;
    for (let done = 0; done < bytes.length;) {
      const left = bytes.length - done;
      const { bytesWritten } = await this.#file.write(bytes, done, left, position + done);
      done += bytesWritten;
    }
  }
}

/** Undefined where this file system, or its disk, cannot do without the cache. */
async function openDirect(
  path: string,
  flags: number,
  position: number,
  memory: Uint8Array,
): Promise<FileHandle | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, flags | constants.O_DIRECT, 0o600);
    // Some say so only now. It is written over.
    await file.write(memory, 0, BLOCK_BYTES, position);
    return file;
  } catch (error) {
    await file?.close();
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
    return undefined;
  }
}

function wholeBlocks(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}

/** Memory at whole blocks, for which JavaScript has no other name than this. */
function alignedPieces(): Piece[] {
  const pages = (PIECES * PIECE_BYTES) / PAGE_BYTES;
  const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  return Array.from({ length: PIECES }, (_, index) => {
    const bytes = Buffer.from(buffer, index * PIECE_BYTES, PIECE_BYTES);
    return { bytes, busy: undefined };
  });
}

function plainPieces(size: number): Piece[] {
  const pieceBytes = Math.max(1, Math.min(size, PIECE_BYTES));
  const count = Math.min(PIECES, Math.ceil(size / pieceBytes) || 1);
  return Array.from({ length: count }, () => {
    return { bytes: Buffer.from(new SharedArrayBuffer(pieceBytes)), busy: undefined };
  });
}
