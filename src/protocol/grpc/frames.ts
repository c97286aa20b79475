/** gRPC's frames: a flag, a length of four bytes, and a message. */
import { Code, ConnectError } from '@connectrpc/connect';

const HEAD_BYTES = 5;

export function frame(message: Uint8Array, mostBytes: number): Buffer {
  if (message.length > mostBytes) throw tooLarge(message.length, 'write', mostBytes);
  const framed = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  framed.writeUInt8(0, 0);
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, HEAD_BYTES);
  return framed;
}

/** Takes bytes as they come and gives whole messages. */
export class Unframer {
  readonly #mostBytes: number;
  #chunks: Buffer[] = [];
  #size = 0;
  /** Of the frame that has begun, its head included; 0 while that is not known. */
  #wanted = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  push(chunk: Buffer): Uint8Array[] {
    const messages: Uint8Array[] = [];
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    while (this.#size >= (this.#wanted || HEAD_BYTES)) {
      const bytes = this.#joined();
      this.#wanted ||= this.#wantedBy(bytes);
      if (bytes.length < this.#wanted) break;
      messages.push(bytes.subarray(HEAD_BYTES, this.#wanted));
      this.#chunks = [bytes.subarray(this.#wanted)];
      this.#size -= this.#wanted;
      this.#wanted = 0;
    }
    return messages;
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    const bytes = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks);
    this.#chunks = [bytes];
    return bytes;
  }

  #wantedBy(bytes: Buffer): number {
    if (bytes.readUInt8(0) !== 0) {
      throw new ConnectError('the answer is compressed, which was not asked for', Code.Internal);
    }
    const length = bytes.readUInt32BE(1);
    if (length > this.#mostBytes) throw tooLarge(length, 'read', this.#mostBytes);
    return HEAD_BYTES + length;
  }
}

/** In the words of Connect, which the server's end uses. */
function tooLarge(size: number, which: 'read' | 'write', mostBytes: number): ConnectError {
  const text = `message size ${size} is larger than configured ${which}MaxBytes ${mostBytes}`;
  return new ConnectError(text, Code.ResourceExhausted);
}
