/** What a file system says, as an error with a code and a hint. */
import { DroverError } from '../../lib/errors.ts';

const FULL = new Set(['ENOSPC', 'EDQUOT']);
const REFUSED = new Set(['EACCES', 'EPERM', 'EROFS']);

/** Runs what touches nothing but the disk; its failures say what was being done. */
export async function onDisk<Result>(doing: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw diskError(error, doing);
  }
}

/** A definite "not there" is undefined; anything else that goes wrong says nothing of absence. */
export async function ifThere<Result>(
  doing: string,
  run: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await run();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw diskError(error, doing);
  }
}

function diskError(error: unknown, doing: string): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof DroverError || code === undefined) return error;
  const cause = error;
  if (FULL.has(code)) {
    const detail = `The disk of the blob store is full (${code}): cannot ${doing}`;
    const hint = 'Nothing was stored. Free some space on it, or remove blobs, and try again.';
    return new DroverError('NO_SPACE', detail, { hint, cause });
  }
  const detail = `The blob store cannot ${doing} (${code})`;
  const hint = REFUSED.has(code)
    ? 'The user that runs Drover must own the folder of blobs.folder, and be able to write there.'
    : 'See to the disk of blobs.folder; what was asked for may be there all the same.';
  return new DroverError('UNAVAILABLE', detail, { hint, cause });
}
