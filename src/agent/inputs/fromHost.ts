/** Inputs that the machine has: a file whose bytes are cached, a path used where it lies. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, statSync, type Stats } from 'node:fs';
import { opendir, symlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import type { BlobHash } from '../../model/blob.ts';
import { hashFile } from '../../protocol/blobClient.ts';
import { linkReadOnly } from '../cache/place.ts';
import { Unprepared } from '../runtimes/around.ts';
import { checkHash } from './checkHash.ts';
import { FOLDER_FILES, fetchFolder } from './folder.ts';
import type { Arrival, Source } from './source.ts';

/** A file, or the files of a folder. */
export const fromFile: Source = async (arrival) => {
  const path = pathIn(arrival);
  if (!look(arrival, path).isDirectory()) return copyFile(arrival, path);
  const names = await listFolder(arrival, path);
  return fetchFolder(arrival, names, (own, name) => copyFile(own, join(path, name)));
};

/** Below the folder; what is neither a file nor a folder has no copy. */
async function listFolder({ input: { name } }: Arrival, folder: string): Promise<string[]> {
  const found: string[] = [];
  const entries = await opendir(folder, { recursive: true });
  for await (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) continue;
    if (!entry.isFile()) {
      const hint = 'take pool:// to use the folder where it lies';
      throw new Unprepared(`input ${name}: ${path} is neither a file nor a folder; ${hint}`);
    }
    if (found.push(relative(folder, path)) > FOLDER_FILES) break;
  }
  return found;
}

/** Read whole each time: it is the machine's own disk, and nothing tells that it did not change. */
async function copyFile(arrival: Arrival, path: string): Promise<string> {
  const { input, cache, target, signal } = arrival;
  const stat = look(arrival, path);
  if (!stat.isFile()) throw new Unprepared(`input ${input.name}: ${path} is not a file or folder`);
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
}

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
