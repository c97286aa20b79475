/**
 * One stream of a tunnel: ordered bytes both ways, each way with its own credit and its own end.
 * Reading grants credit only for what was consumed, so that a stalled reader stalls its own writer
 * and no one else.
 */
import { DroverError, type ErrorCode } from '../../lib/errors.ts';
import { ByteQueue } from './byteQueue.ts';
import { FRAME_HEADER_BYTES, type Frame, type OpenHeader } from './frames.ts';
import type { TunnelLimits } from './limits.ts';

/** What a stream needs of its tunnel. */
export interface StreamPort {
  limits: TunnelLimits;
  /** It has something to send: call `nextFrame` when its turn comes. */
  ready(stream: TunnelStream): void;
  /** Sent at once, ahead of data. */
  sendNow(frame: Frame): void;
  /** Both ways have ended: forget it. */
  finished(stream: TunnelStream): void;
}

interface PendingWrite {
  bytes: Uint8Array;
  offset: number;
  resolve(): void;
  reject(error: Error): void;
}

export class TunnelStream implements AsyncIterable<Uint8Array> {
  readonly id: number;
  readonly header: OpenHeader;
  /** Resolves once both ways have ended, or it was reset by either side, or its tunnel ended. */
  readonly closed: Promise<void>;
  readonly #port: StreamPort;
  readonly #received = new ByteQueue();
  readonly #pending: PendingWrite[] = [];
  #credit: number;
  /** What the peer may still send: less than what it sends is a violation. */
  #granted: number;
  #consumed = 0;
  #ending: 'no' | 'queued' | 'sent' = 'no';
  #peerEnded = false;
  #failure: DroverError | undefined;
  #wakeReader: (() => void) | undefined;
  #resolveClosed: () => void;

  constructor(id: number, header: OpenHeader, port: StreamPort) {
    this.id = id;
    this.header = header;
    this.#port = port;
    this.#credit = port.limits.windowBytes;
    this.#granted = port.limits.windowBytes;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#resolveClosed = resolve;
  }

  /** Resolves when the last byte was handed to the socket; await it before writing more. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#ending !== 'no') return Promise.reject(new Error('write after end'));
    if (bytes.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#pending.push({ bytes, offset: 0, resolve, reject });
      this.#port.ready(this);
    });
  }

  /** No more writes; the peer sees the end after everything written before. */
  end(): void {
    if (this.#ending !== 'no' || this.#failure !== undefined) return;
    this.#ending = 'queued';
    this.#port.ready(this);
  }

  /**
   * Ends both ways at once and drops what was not sent; the peer's reads and writes fail with this.
   */
  reset(code: ErrorCode, message: string): void {
    if (this.#isDone()) return;
    this.#port.sendNow({ type: 'RESET', stream: this.id, code, message });
    this.fail(new DroverError(code, message));
  }

  /** One reader only. Throws the peer's reset as a DroverError. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const bytes = this.#received.shift();
      if (bytes !== undefined) {
        yield bytes;
        this.#consume(bytes.length);
      } else if (this.#failure !== undefined) {
        throw this.#failure;
      } else if (this.#peerEnded) {
        return;
      } else {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wakeReader = resolve;
        await promise;
      }
    }
  }

  /** For the tunnel: what to send now that it is this stream's turn, if credit allows anything. */
  nextFrame(): Frame | undefined {
    const write = this.#pending[0];
    if (write !== undefined) return this.#dataFrame(write);
    if (this.#ending !== 'queued') return undefined;
    this.#ending = 'sent';
    this.#finishIfDone();
    return { type: 'END', stream: this.id };
  }

  #dataFrame(write: PendingWrite): Frame | undefined {
    const most = Math.min(this.#credit, this.#port.limits.frameBytes - FRAME_HEADER_BYTES);
    if (most === 0) return undefined;
    const bytes = write.bytes.subarray(write.offset, write.offset + most);
    this.#credit -= bytes.length;
    write.offset += bytes.length;
    if (write.offset === write.bytes.length) {
      this.#pending.shift();
      write.resolve();
    }
    return { type: 'DATA', stream: this.id, bytes };
  }

  /** For the tunnel. Throws when the peer broke the rules, which ends the tunnel. */
  receive(frame: Frame): void {
    switch (frame.type) {
      case 'OPEN':
        throw new DroverError('MALFORMED_BODY', `stream ${this.id} was opened twice`);
      case 'DATA':
        return this.#receiveData(frame.bytes);
      case 'WINDOW':
        return this.#receiveCredit(frame.bytes);
      case 'END':
        if (this.#peerEnded) {
          throw new DroverError('MALFORMED_BODY', `stream ${this.id} ended twice`);
        }
        this.#peerEnded = true;
        this.#wake();
        return this.#finishIfDone();
      case 'RESET':
        return this.fail(new DroverError(frame.code, frame.message));
    }
  }

  /** For the tunnel: the stream is over, by reset or with its tunnel. */
  fail(failure: DroverError): void {
    if (this.#isDone()) return;
    this.#failure = failure;
    this.#received.clear();
    for (const write of this.#pending.splice(0)) write.reject(failure);
    this.#wake();
    this.#port.finished(this);
    this.#resolveClosed();
  }

  #receiveData(bytes: Uint8Array): void {
    if (this.#peerEnded) throw new DroverError('MALFORMED_BODY', `data after end on ${this.id}`);
    this.#granted -= bytes.length;
    if (this.#granted < 0) {
      throw new DroverError('MALFORMED_BODY', `stream ${this.id} sent more than it was granted`);
    }
    this.#received.push(bytes);
    this.#wake();
  }

  #receiveCredit(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > this.#port.limits.windowBytes) {
      throw new DroverError('MALFORMED_BODY', `stream ${this.id} was granted more than a window`);
    }
    this.#port.ready(this);
  }

  /** In quarters of a window, so that small reads do not cost a frame each. */
  #consume(bytes: number): void {
    this.#consumed += bytes;
    if (this.#peerEnded || this.#failure !== undefined) return;
    if (this.#consumed < this.#port.limits.windowBytes / 4) return;
    this.#granted += this.#consumed;
    this.#port.sendNow({ type: 'WINDOW', stream: this.id, bytes: this.#consumed });
    this.#consumed = 0;
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }

  #isDone(): boolean {
    return this.#failure !== undefined || (this.#peerEnded && this.#ending === 'sent');
  }

  #finishIfDone(): void {
    if (!this.#isDone()) return;
    this.#port.finished(this);
    this.#resolveClosed();
  }
}
