/**
 * A manifest: the content of a folder, each file a blob. Code bundles, data sets, results and
 * checkpoints are all this, so that what did not change is stored and sent once. The manifest is a
 * blob itself, and equal folders have equal manifests: entries are sorted by path.
 */
import { isBlobHash, type BlobHash } from './blob.ts';

export interface ManifestFile {
  /** Below the folder, with `/`; never `..`, never absolute. */
  path: string;
  hash: BlobHash;
  size: number;
  executable: boolean;
}

export interface ManifestLink {
  path: string;
  /** As it stands in the link; it leads nowhere outside the folder. */
  target: string;
}

export interface Manifest {
  version: 1;
  files: ManifestFile[];
  links: ManifestLink[];
  /** Only those that are empty; others follow from the files. */
  folders: string[];
}

const byPath = (a: { path: string }, b: { path: string }): number => (a.path < b.path ? -1 : 1);

/** The bytes of its blob. */
export function manifestText(manifest: Manifest): string {
  const { files, links, folders } = manifest;
  return JSON.stringify({
    version: 1,
    files: files
      .toSorted(byPath)
      .map(({ path, hash, size, executable }) => ({ path, hash, size, executable })),
    links: links.toSorted(byPath).map(({ path, target }) => ({ path, target })),
    folders: folders.toSorted(),
  });
}

/** Throws with the reason when the text is no manifest, or one that would write elsewhere. */
export function parseManifest(text: string): Manifest {
  const read = JSON.parse(text) as Partial<Manifest> | null;
  if (read?.version !== 1) throw new Error('it is not a manifest of version 1');
  const { files, links, folders } = read;
  if (!Array.isArray(files) || !Array.isArray(links) || !Array.isArray(folders)) {
    throw new Error('its lists of files, links and folders are incomplete');
  }
  const seen = new Set<string>();
  const paths = [...files.map(({ path }) => path), ...links.map(({ path }) => path), ...folders];
  for (const path of paths) {
    if (!staysBelow(path)) throw new Error(`the path ${JSON.stringify(path)} leads out of it`);
    if (seen.has(path)) throw new Error(`the path ${JSON.stringify(path)} appears twice`);
    seen.add(path);
  }
  for (const { path, hash, size } of files) {
    if (!isBlobHash(hash) || !Number.isSafeInteger(size) || size < 0) {
      throw new Error(`the file ${JSON.stringify(path)} has no hash or size`);
    }
    checkParents(path, seen);
  }
  for (const { path, target } of links) {
    checkParents(path, seen);
    if (!linkStaysBelow(path, target)) {
      throw new Error(`the link ${JSON.stringify(path)} leads out of it`);
    }
  }
  return { version: 1, files, links, folders };
}

/** A path below a file or through a link could be written anywhere. */
function checkParents(path: string, entries: ReadonlySet<string>): void {
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const parent = path.slice(0, at);
    if (entries.has(parent)) {
      throw new Error(`${JSON.stringify(path)} lies below ${JSON.stringify(parent)}, a file`);
    }
  }
}

export function staysBelow(path: unknown): path is string {
  if (typeof path !== 'string' || path === '' || path.includes('\0')) return false;
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

/** Whether a link at `path` with this target leads to something inside the folder. */
export function linkStaysBelow(path: string, target: unknown): boolean {
  if (typeof target !== 'string' || target === '' || target.startsWith('/')) return false;
  let depth = path.split('/').length - 1;
  for (const part of target.split('/')) {
    if (part === '..') depth--;
    else if (part !== '.' && part !== '') depth++;
    if (depth < 0) return false;
  }
  return true;
}

export function manifestBytes({ files }: Manifest): number {
  let total = 0;
  for (const { size } of files) total += size;
  return total;
}
