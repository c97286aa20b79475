/** Several files as one input: each below its target, and one hash that says what they all are. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { blobHashOf, isBlobHash } from '../../model/blob.ts';
import { manifestText, staysBelow, type ManifestFile } from '../../model/manifest.ts';
import { Unprepared } from '../runtimes/around.ts';
import { checkHash } from './checkHash.ts';
import type { Arrival } from './source.ts';

/** More are a data set to pack first: each is a request and a file of the cache. */
export const FOLDER_FILES = 100_000;
/** Small ones mostly wait for their server. */
const AT_ONCE = 8;

/** `fetchOne` has one of the paths at the target of the arrival it gets, and returns its hash. */
export async function fetchFolder(
  arrival: Arrival,
  paths: readonly string[],
  fetchOne: (arrival: Arrival, path: string) => Promise<string>,
): Promise<string> {
  const { input, target, say } = arrival;
  checkPaths(arrival, paths);
  const files: ManifestFile[] = [];
  let next = 0;
  const fetchSome = async (): Promise<void> => {
    for (let at = next++; at < paths.length; at = next++) {
      const path = paths[at]!;
      const own = { ...arrival, target: join(target, path), input: { ...input, hash: '' } };
      await mkdir(dirname(own.target), { recursive: true });
      const hash = await fetchOne(own, path);
      if (!isBlobHash(hash)) throw new Error(`${path} came without a hash`);
      const { size, mode } = await stat(own.target);
      files.push({ path, hash, size, executable: (mode & 0o100) !== 0 });
      if (files.length % 100 === 0) say(`fetching ${input.name}: ${files.length} files`);
    }
  };
  const ends = await Promise.allSettled(
    Array.from({ length: AT_ONCE }, () =>
      fetchSome().catch((error: unknown) => {
        next = paths.length;
        throw error;
      }),
    ),
  );
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  const manifest = manifestText({ version: 1, files, links: [], folders: [] });
  const found = blobHashOf(Buffer.from(manifest));
  checkHash(input, found);
  return found;
}

function checkPaths({ input: { name, uri } }: Arrival, paths: readonly string[]): void {
  if (paths.length === 0) throw new Unprepared(`input ${name}: ${uri} holds no files`);
  if (paths.length > FOLDER_FILES) {
    const hint = 'pack them into archives, or name a folder of fewer';
    throw new Unprepared(`input ${name}: ${uri} has more than ${FOLDER_FILES} files; ${hint}`);
  }
  const taken = new Set(paths);
  for (const path of paths) {
    const above = path.split('/').slice(0, -1);
    const clash = above.find((_, at) => taken.has(above.slice(0, at + 1).join('/')));
    if (staysBelow(path) && clash === undefined) continue;
    const why = clash === undefined ? 'is no path below it' : 'is below another file';
    throw new Unprepared(`input ${name}: ${path} of ${uri} cannot be a file here: it ${why}`);
  }
}
