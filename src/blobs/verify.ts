/** Checks that content is what its name says, while it passes by. */
import { createHash } from 'node:crypto';
import { DroverError } from '../lib/errors.ts';
import type { BlobHash } from '../model/blob.ts';
import type { BlobContent } from './contract.ts';

/** What is said of content; each throws INVALID_ARGUMENT where it is not so. */
export class Stated {
  readonly hash: BlobHash;
  readonly size: number;
  #seen = 0;

  constructor(hash: BlobHash, size: number) {
    this.hash = hash;
    this.size = size;
  }

  saw(bytes: number): void {
    this.#seen += bytes;
    if (this.#seen > this.size) {
      throw wrong(`has more bytes than the ${this.size} that were stated`);
    }
  }

  ended(): void {
    if (this.#seen === this.size) return;
    throw wrong(`has ${this.#seen} bytes where ${this.size} were stated`);
  }

  isHash(hex: string): void {
    if (`sha256:${hex}` !== this.hash) throw wrong(`has the hash sha256:${hex}, not ${this.hash}`);
  }
}

/** Yields the same chunks; throws INVALID_ARGUMENT at the first that is too much, or at the end. */
export async function* verified(
  hash: BlobHash,
  size: number,
  content: BlobContent,
): AsyncGenerator<Uint8Array> {
  const stated = new Stated(hash, size);
  const digest = createHash('sha256');
  for await (const chunk of content) {
    stated.saw(chunk.length);
    digest.update(chunk);
    yield chunk;
  }
  stated.ended();
  stated.isHash(digest.digest('hex'));
}

function wrong(what: string): DroverError {
  return new DroverError('INVALID_ARGUMENT', `The content ${what}`, {
    hint: 'Nothing was stored. Read the file again (it may have changed) and send it once more.',
  });
}
