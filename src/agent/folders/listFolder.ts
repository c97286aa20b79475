/** What lies in a folder: files, links that stay inside it, and what is neither. */
import { lstatSync, readdirSync, readlinkSync, type BigIntStats } from 'node:fs';
import { join } from 'node:path';
import { linkStaysBelow, type ManifestLink } from '../../model/manifest.ts';

export interface FoundFile {
  path: string;
  source: string;
  stat: BigIntStats;
}

interface FoundFolder {
  path: string;
  stat: BigIntStats;
}

export interface Listing {
  files: FoundFile[];
  links: ManifestLink[];
  /** Also those that are not empty. */
  folders: FoundFolder[];
  /** Sockets, devices and links that lead out of it, for a person. */
  others: string[];
}

export interface ListOptions {
  /** Neither these nor what is below them. */
  ignore?: (name: string) => boolean;
}

/** What goes while it is read is left out; an unreadable folder is thrown. */
export function listFolder(root: string, options: ListOptions = {}): Listing {
  const listing: Listing = { files: [], links: [], folders: [], others: [] };
  const visit = (below: string): void => {
    for (const name of namesIn(join(root, below))) {
      if (options.ignore?.(name)) continue;
      const path = below === '' ? name : `${below}/${name}`;
      if (addEntry(listing, root, path)) visit(path);
    }
  };
  visit('');
  return listing;
}

/** True for a folder. */
function addEntry(listing: Listing, root: string, path: string): boolean {
  const source = join(root, path);
  const stat = lstatSync(source, { bigint: true, throwIfNoEntry: false });
  if (!stat) return false;
  if (stat.isFile()) listing.files.push({ path, source, stat });
  else if (stat.isDirectory()) {
    listing.folders.push({ path, stat });
    return true;
  } else if (stat.isSymbolicLink()) {
    const target = targetOf(source);
    if (target === undefined) return false;
    if (linkStaysBelow(path, target)) listing.links.push({ path, target });
    else listing.others.push(`${path} is a link that leads out of it`);
  } else listing.others.push(`${path} is neither a file nor a folder`);
  return false;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The folders above it, from the top. */
export function parentsOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join('/'));
}

export function emptyFolders({ folders, files, links }: Listing): string[] {
  const full = new Set([...files, ...links, ...folders].flatMap(({ path }) => parentsOf(path)));
  return folders.map(({ path }) => path).filter((path) => !full.has(path));
}
