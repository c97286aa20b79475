/** The request being filled: pieces of output in one buffer that every request uses again. */
import type { LogChunk } from '../../protocol/agent.ts';
import { encodeLogFrames, frameBytes, LOG_FRAME_LIMITS } from '../../protocol/logFrames.ts';
import type { SpooledAttempt, SpoolStream } from './attempt.ts';

export interface Filled {
  chunk: LogChunk;
  stream: SpoolStream;
}

export class SpoolBatch {
  filled: Filled[] = [];
  readonly #buffer: Buffer;
  #bytes = 0;
  #frameBytes = 0;

  constructor(batchBytes: number) {
    this.#buffer = Buffer.allocUnsafe(batchBytes);
  }

  clear(): void {
    this.filled = [];
    this.#bytes = 0;
    this.#frameBytes = 0;
  }

  /** Where to read the next piece to; empty when there is no room for one. */
  room(uid: string, mostBytes: number): Buffer {
    if (this.filled.length >= LOG_FRAME_LIMITS.frames) return this.#buffer.subarray(0, 0);
    const left = this.#buffer.length - this.#frameBytes - frameBytes(uid, 0);
    const length = Math.max(0, Math.min(mostBytes, left));
    return this.#buffer.subarray(this.#bytes, this.#bytes + length);
  }

  /** `bytes` is the beginning of what `room` gave. */
  add(attempt: SpooledAttempt, stream: SpoolStream, bytes: Buffer, atMs: number): void {
    const chunk = { uid: attempt.uid, stream: stream.name, offset: stream.readAt, atMs, bytes };
    this.filled.push({ chunk, stream });
    this.#bytes += bytes.length;
    this.#frameBytes += frameBytes(attempt.uid, bytes.length);
    stream.readAt += bytes.length;
  }

  encode(): Uint8Array {
    return encodeLogFrames(this.filled.map(({ chunk }) => chunk));
  }
}
