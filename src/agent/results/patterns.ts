/** Which files below a folder patterns mean: a folder named by one means all that is in it. */
import { matchesGlob } from 'node:path';
import { join } from 'node:path';
import { listFolder, type Listing } from '../folders/listFolder.ts';

const WILD = /[*?[\]{}!()]/;

export function listMatching(root: string, patterns: readonly string[]): Listing {
  const found: Listing = { files: [], links: [], folders: [], others: [] };
  const seen = new Set<string>();
  for (const written of patterns) {
    const pattern = written.replace(/^(\.\/)+/, '').replace(/\/+$/, '');
    const start = fixedPart(pattern);
    const listed = listBelow(root, start);
    const fresh = (path: string): boolean => {
      if (seen.has(path) || !matches(path, pattern)) return false;
      seen.add(path);
      return true;
    };
    found.files.push(...listed.files.filter(({ path }) => fresh(path)));
    found.links.push(...listed.links.filter(({ path }) => fresh(path)));
    found.folders.push(...listed.folders.filter(({ path }) => fresh(path)));
    // Only where everything below was asked for is a socket worth a word.
    if (!WILD.test(pattern)) found.others.push(...listed.others);
  }
  return found;
}

/** The folders before the first wildcard: nothing outside them has to be looked at. */
function fixedPart(pattern: string): string {
  const parts = pattern.split('/');
  const wild = parts.findIndex((part) => WILD.test(part));
  return (wild < 0 ? parts.slice(0, -1) : parts.slice(0, wild)).join('/');
}

function listBelow(root: string, start: string): Listing {
  const listed = listFolder(join(root, start));
  if (start === '') return listed;
  const below = <Entry extends { path: string }>(entry: Entry): Entry => ({
    ...entry,
    path: `${start}/${entry.path}`,
  });
  return {
    files: listed.files.map(below),
    links: listed.links.map(below),
    folders: listed.folders.map(below),
    others: listed.others.map((other) => `${start}/${other}`),
  };
}

/** Itself, or a folder it lies in. */
function matches(path: string, pattern: string): boolean {
  if (pattern === '' || pattern === '.') return true;
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    if (matchesGlob(path.slice(0, at), pattern)) return true;
  }
  return matchesGlob(path, pattern);
}
