/**
 * The request being filled: frames laid out in one buffer, which every request uses again. Output
 * is read into its place, so that it is copied once between file and socket.
 */
import type { LogChunk } from '../../protocol/agent.ts';
import {
  frameBytes,
  LOG_FRAME_LIMITS,
  writeFrameHead,
  writeLogHead,
} from '../../protocol/logFrames.ts';
import type { SpooledAttempt, SpoolStream } from './attempt.ts';

export interface Filled {
  chunk: LogChunk;
  stream: SpoolStream;
}

export class SpoolBatch {
  filled: Filled[] = [];
  readonly #buffer: Buffer;
  #end = 0;

  constructor(batchBytes: number) {
    this.#buffer = Buffer.allocUnsafe(batchBytes);
    this.clear();
  }

  clear(): void {
    this.filled = [];
    this.#end = writeLogHead(this.#buffer, 0);
  }

  /** Where to read the next piece to; empty when there is no room for one. */
  room(uid: string, mostBytes: number): Buffer {
    if (this.filled.length >= LOG_FRAME_LIMITS.frames) return this.#buffer.subarray(0, 0);
    const begin = this.#end + frameBytes(uid, 0);
    const end = Math.min(begin + mostBytes, this.#buffer.length);
    return this.#buffer.subarray(Math.min(begin, end), end);
  }

  /** `bytes` is the beginning of what `room` gave. */
  add(attempt: SpooledAttempt, stream: SpoolStream, bytes: Buffer, atMs: number): void {
    const chunk = { uid: attempt.uid, stream: stream.name, offset: stream.readAt, atMs, bytes };
    this.filled.push({ chunk, stream });
    this.#end = writeFrameHead(this.#buffer, this.#end, chunk) + bytes.length;
    stream.readAt += bytes.length;
  }

  /** Valid until it is cleared. */
  body(): Uint8Array {
    writeLogHead(this.#buffer, this.filled.length);
    return this.#buffer.subarray(0, this.#end);
  }
}
