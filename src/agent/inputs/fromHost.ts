/** Inputs that the machine has: a file whose bytes are cached, a path used where it lies. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, statSync, type Stats } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import type { BlobHash } from '../../model/blob.ts';
import { hashFile } from '../../protocol/blobClient.ts';
import { linkReadOnly } from '../cache/place.ts';
import { Unprepared } from '../runtimes/around.ts';
import { checkHash } from './checkHash.ts';
import type { Arrival, Source } from './source.ts';

/** Read whole each time: it is the machine's own disk, and nothing tells that it did not change. */
export const fromFile: Source = async (arrival) => {
  const { input, cache, target, signal } = arrival;
  const path = pathIn(arrival);
  const stat = look(arrival, path);
  if (!stat.isFile()) {
    const hint = 'take pool:// for a folder of the host, or `drover data put` to have a copy';
    throw new Unprepared(`input ${input.name}: ${path} is not a file; ${hint}`);
  }
  return cache.withPart(async (part, makeRoom) => {
    makeRoom(stat.size);
    const digest = createHash('sha256');
    const hashing = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        digest.update(chunk);
        done(null, chunk);
      },
    });
    await pipeline(createReadStream(path), hashing, createWriteStream(part), { signal });
    const found: BlobHash = `sha256:${digest.digest('hex')}`;
    checkHash(input, found);
    // Linked before it is kept: in use from the first moment, nothing evicts it.
    await linkReadOnly(part, target, false);
    cache.keep(part, found);
    return found;
  });
};

/** A link to where it lies. Its content is the host's affair, unless a hash says what it is. */
export const fromPool: Source = async (arrival) => {
  const { input, target, signal } = arrival;
  const path = pathIn(arrival);
  const stat = look(arrival, path);
  await symlink(path, target);
  if (input.hash === '') return path;
  if (!stat.isFile()) {
    throw new Unprepared(`input ${input.name}: ${path} is a folder, whose hash cannot be checked`);
  }
  const { hash } = await hashFile(path, { signal });
  checkHash(input, hash);
  return hash;
};

function pathIn({ input: { name, uri } }: Arrival): string {
  try {
    return fileURLToPath(uri.replace(/^pool:/, 'file:'));
  } catch (error) {
    const message = `input ${name}: ${uri} is no path: ${(error as Error).message}`;
    throw new Unprepared(message, { cause: error });
  }
}

/** Another machine of the pool may have it. */
function look({ input: { name } }: Arrival, path: string): Stats {
  try {
    return statSync(path);
  } catch (error) {
    const message = `input ${name}: ${path} cannot be read here: ${(error as Error).message}`;
    throw new Unprepared(message, { hostFault: true, cause: error });
  }
}
