/** What of a folder travels: its files, links and empty folders, less what is ignored. */
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import path from 'node:path';
import { linkStaysBelow, type ManifestLink } from '../../model/manifest.ts';
import { UsageError } from '../args.ts';
import { showMemory } from '../resources.ts';
import { isIgnored, parseIgnore, type IgnoreFile } from './ignore.ts';

/** Against surprises: a data set or a core dump that nobody meant to send. */
export const BUNDLE_LIMITS = {
  fileBytes: 100 * 2 ** 20,
  totalBytes: 2 ** 30,
  files: 200_000,
} as const;

export interface FoundFile {
  path: string;
  size: number;
  executable: boolean;
  /** With size and path it tells whether the content can have changed. */
  mtimeNs: bigint;
  inode: bigint;
}

export interface Found {
  files: FoundFile[];
  links: ManifestLink[];
  folders: string[];
}

export interface WalkOptions {
  /** Names of the files with patterns, the later the stronger; none: everything travels. */
  ignoreFiles: readonly string[];
  fileBytes: number;
  totalBytes: number;
  files: number;
  /** What to try where a limit is passed. */
  hint: string;
}

/** Throws UsageError with the path of whatever cannot travel. */
export function walkFolder(root: string, options: WalkOptions): Found {
  const found: Found = { files: [], links: [], folders: [] };
  const walk = new Walk(realRoot(root), found, options);
  walk.folder('', walk.outerRules());
  return found;
}

function realRoot(root: string): string {
  try {
    const real = realpathSync(root);
    if (lstatSync(real).isDirectory()) return real;
  } catch (error) {
    throw new UsageError(`${root} cannot be read: ${(error as Error).message}`);
  }
  throw new UsageError(`${root} is not a folder`);
}

class Walk {
  readonly #root: string;
  readonly #found: Found;
  readonly #options: WalkOptions;
  #bytes = 0;

  constructor(root: string, found: Found, options: WalkOptions) {
    this.#root = root;
    this.#found = found;
    this.#options = options;
  }

  /** A subfolder of a repository obeys what stands above it, up to the repository's top. */
  outerRules(): IgnoreFile[] {
    if (this.#options.ignoreFiles.length === 0) return [];
    const above: string[] = [];
    for (let at = this.#root; ; at = path.dirname(at)) {
      if (at !== this.#root) above.unshift(at);
      if (isThere(path.join(at, '.git'))) break;
      if (path.dirname(at) === at) return [];
    }
    return above.flatMap((folder) => {
      const prefix = path.relative(folder, this.#root);
      return this.#rulesIn(folder, (at) => `${prefix}/${at}`);
    });
  }

  folder(below: string, outer: readonly IgnoreFile[]): void {
    const full = path.join(this.#root, below);
    const seen = (at: string): string => (below === '' ? at : at.slice(below.length + 1));
    const rules = [...outer, ...this.#rulesIn(full, seen)];
    let kept = 0;
    let names: string[];
    try {
      names = readdirSync(full);
    } catch (error) {
      throw this.#refusal(below, `cannot be read: ${(error as Error).message}`);
    }
    for (const name of names) {
      const at = below === '' ? name : `${below}/${name}`;
      if (name === '.git' && this.#options.ignoreFiles.length > 0) continue;
      const stat = this.#look(at);
      if (isIgnored(rules, at, stat.isDirectory())) continue;
      kept++;
      if (stat.isDirectory()) this.folder(at, rules);
      else this.#entry(at, stat);
    }
    if (kept === 0 && below !== '') this.#found.folders.push(below);
  }

  #look(at: string): BigIntStats {
    if (at.includes('\ufffd')) throw this.#refusal(at, 'has a name that is not UTF-8');
    try {
      return lstatSync(path.join(this.#root, at), { bigint: true });
    } catch (error) {
      throw this.#refusal(at, `cannot be read: ${(error as Error).message}`);
    }
  }

  #rulesIn(full: string, seen: IgnoreFile['seen']): IgnoreFile[] {
    return this.#options.ignoreFiles.flatMap((name) => {
      const text = readIfThere(path.join(full, name));
      return text === undefined ? [] : [parseIgnore(text, seen)];
    });
  }

  #entry(at: string, stat: BigIntStats): void {
    if (stat.isSymbolicLink()) this.#link(at);
    else if (stat.isFile()) this.#file(at, stat);
    else throw this.#refusal(at, `is a ${kindOf(stat)}, which cannot be sent`);
    const { files, links } = this.#found;
    if (files.length + links.length > this.#options.files) {
      const message = `${this.#root} holds more than ${this.#options.files} files`;
      throw new UsageError(message, this.#options.hint);
    }
  }

  #file(at: string, stat: BigIntStats): void {
    const { fileBytes, totalBytes, hint } = this.#options;
    const size = Number(stat.size);
    if (size > fileBytes) {
      const message = `is ${showMemory(size)}; one file may have ${showMemory(fileBytes)}`;
      throw this.#refusal(at, message, hint);
    }
    this.#bytes += size;
    if (this.#bytes > totalBytes) {
      const most = showMemory(totalBytes);
      throw new UsageError(`${this.#root} is more than ${most}: at ${at}`, hint);
    }
    this.#found.files.push({
      path: at,
      size,
      executable: (stat.mode & 0o100n) !== 0n,
      mtimeNs: stat.mtimeNs,
      inode: stat.ino,
    });
  }

  #link(at: string): void {
    const target = readlinkSync(path.join(this.#root, at));
    const leaves = this.#refusal(
      at,
      `is a link that leads out of the folder, to ${target}`,
      'make it relative and point inside, or leave it out by a line in .droverignore',
    );
    if (!linkStaysBelow(at, target)) throw leaves;
    const real = this.#destination(at);
    if (real !== undefined && real !== this.#root && !real.startsWith(`${this.#root}/`)) {
      throw leaves;
    }
    this.#found.links.push({ path: at, target });
  }

  /** Undefined: it leads to nothing, which is the user's affair. */
  #destination(at: string): string | undefined {
    try {
      // The other one resolves `..` without following the links before it.
      return realpathSync.native(path.join(this.#root, at));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      if (code === 'ELOOP') throw this.#refusal(at, 'is a link that leads back to itself');
      throw this.#refusal(at, `cannot be followed: ${(error as Error).message}`);
    }
  }

  #refusal(at: string, message: string, hint?: string): UsageError {
    const out = 'leave it out by a line in .droverignore, or remove it';
    return new UsageError(`${path.join(this.#root, at)} ${message}`, hint ?? out);
  }
}

function kindOf(stat: BigIntStats): string {
  if (stat.isSocket()) return 'socket';
  if (stat.isFIFO()) return 'named pipe';
  return 'device';
}

function isThere(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return undefined;
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}
