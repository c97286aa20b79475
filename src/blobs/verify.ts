/** Checks that content is what its name says, while it passes by. */
import { createHash } from 'node:crypto';
import { DroverError } from '../lib/errors.ts';
import type { BlobHash } from '../model/blob.ts';
import type { BlobContent } from './contract.ts';

/** Yields the same chunks; throws INVALID_ARGUMENT at the first that is too much, or at the end. */
export async function* verified(
  hash: BlobHash,
  size: number,
  content: BlobContent,
): AsyncGenerator<Uint8Array> {
  const digest = createHash('sha256');
  let seen = 0;
  for await (const chunk of content) {
    seen += chunk.length;
    if (seen > size) throw wrong(`has more bytes than the ${size} that were stated`);
    digest.update(chunk);
    yield chunk;
  }
  if (seen < size) throw wrong(`has ${seen} bytes where ${size} were stated`);
  const found = digest.digest('hex');
  if (`sha256:${found}` !== hash) throw wrong(`has the hash sha256:${found}, not ${hash}`);
}

function wrong(what: string): DroverError {
  return new DroverError('INVALID_ARGUMENT', `The content ${what}`, {
    hint: 'Nothing was stored. Read the file again (it may have changed) and send it once more.',
  });
}
