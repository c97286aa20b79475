/** Secrets that a setting names a file for. */
import { DroverError } from '../lib/errors.ts';

export function secretFrom(
  setting: string,
  path: string,
  readFile: (path: string) => string,
): string {
  try {
    return readFile(path).trim();
  } catch (error) {
    const detail = `${setting} names ${path}, which cannot be read`;
    const hint = 'Check that it exists and that this user may read it.';
    throw new DroverError('INVALID_ARGUMENT', detail, { hint, cause: error });
  }
}
