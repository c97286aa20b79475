/**
 * Bytes by their hash, once per machine, for code and inputs of all attempts. Files enter whole and
 * checked. What an attempt uses is a hard link, so a file with more than one name is in use and is
 * never evicted, whichever agent linked it; of the others the least recently used go first.
 */
import { chmodSync, existsSync, lstatSync, renameSync, rmSync, utimesSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { hexOf, type BlobHash } from '../../model/blob.ts';
import { Unprepared } from '../runtimes/around.ts';
import { listFiles } from './listFiles.ts';
import { TreeNotes } from './treeNotes.ts';

/** The time of change a file gets when it is checked: one with another was written to since. */
const UNTOUCHED_S = 1;
/** Less is fetched in no time: where it lies does not matter. */
const HELD_LEAST_BYTES = 1024 * 1024;

export interface CacheOptions {
  folder: string;
  maxBytes: number;
  clock: Clock;
}

/** Says how large a file will be, as soon as that is known: makes room, or throws Unprepared. */
export type MakeRoom = (bytes: number) => void;
/** Puts the bytes at `path`, checked. */
export type Fetch = (path: string, makeRoom: MakeRoom) => Promise<void>;

export class ContentCache {
  readonly #options: CacheOptions;
  /** Size of each file, the least recently used first. */
  #files: Map<BlobHash, number> | undefined;
  #opening: Promise<void> | undefined;
  readonly #pins = new Map<BlobHash, number>();
  readonly #fetching = new Map<BlobHash, Promise<void>>();
  /** Files that are worth telling of, and folders by their manifests: see `held`. */
  readonly #large = new Map<BlobHash, number>();
  readonly #trees: TreeNotes;
  #bytes = 0;
  #promised = 0;
  #parts = 0;

  /** Rises whenever `held` may say something else. */
  version = 0;

  constructor(options: CacheOptions) {
    this.#options = options;
    this.#trees = new TreeNotes(join(options.folder, 'trees'));
  }

  /** Reads what an earlier agent left, where it left anything. */
  async look(): Promise<void> {
    if (existsSync(join(this.#options.folder, 'files'))) await this.#open();
  }

  /** The largest it has: files by their hash, folders by the hash of their manifest. */
  held(most: number): { hash: BlobHash; bytes: number }[] {
    const all = [...this.#large, ...this.#trees.all()];
    const found = all.map(([hash, bytes]) => ({ hash, bytes }));
    return found.toSorted((a, b) => b.bytes - a.bytes).slice(0, most);
  }

  /**
   * A folder is here, all of it. Its manifest was used before its files, so it is evicted before
   * them: while it is there, they are.
   */
  noteTree(manifest: BlobHash, bytes: number): void {
    if (bytes >= HELD_LEAST_BYTES && this.#trees.add(manifest, bytes)) this.version++;
  }

  /** A file of its own for bytes on their way; it is gone afterwards. */
  async withPart<Result>(run: (path: string, makeRoom: MakeRoom) => Promise<Result>) {
    await this.#open();
    const part = join(this.#options.folder, 'parts', String(++this.#parts));
    let promised = 0;
    const makeRoom = (bytes: number): void => {
      const more = Math.max(0, bytes - promised);
      this.#makeRoom(more);
      promised += more;
      this.#promised += more;
    };
    try {
      return await run(part, makeRoom);
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'ENOSPC' ? this.#diskFull(error) : error;
    } finally {
      this.#promised -= promised;
      for (const path of [part, `${part}.part`]) rmSync(path, { force: true });
    }
  }

  /** `use` gets the path of the file, which is fetched first where it is not there. */
  async use<Result>(
    hash: BlobHash,
    fetch: Fetch,
    use: (path: string) => Promise<Result>,
  ): Promise<Result> {
    await this.#open();
    this.#pins.set(hash, (this.#pins.get(hash) ?? 0) + 1);
    try {
      for (;;) {
        const fetching = this.#fetching.get(hash);
        if (fetching) {
          // Who began it may have been stopped: then it is begun anew here.
          await fetching.catch(() => undefined);
        } else if (this.#has(hash)) {
          return await use(this.#pathOf(hash));
        } else {
          await this.#fetch(hash, fetch);
        }
      }
    } finally {
      const pins = this.#pins.get(hash)! - 1;
      if (pins > 0) this.#pins.set(hash, pins);
      else this.#pins.delete(hash);
    }
  }

  /** False where it is not there. */
  async useIfThere(hash: BlobHash, use: (path: string) => Promise<void>): Promise<boolean> {
    const absent = new Error('not there');
    const fetch = (): Promise<void> => Promise.reject(absent);
    try {
      await this.use(hash, fetch, use);
      return true;
    } catch (error) {
      if (error === absent) return false;
      throw error;
    }
  }

  /** Whether it is there, as it was when it came. */
  async has(hash: BlobHash): Promise<boolean> {
    await this.#open();
    return this.#has(hash);
  }

  /** Takes over a part whose hash is known and checked. */
  keep(part: string, hash: BlobHash): void {
    if (this.#has(hash)) return;
    const { size } = lstatSync(part);
    chmodSync(part, 0o444);
    utimesSync(part, this.#options.clock.now() / 1000, UNTOUCHED_S);
    renameSync(part, this.#pathOf(hash));
    this.#files!.set(hash, size);
    this.#bytes += size;
    this.#note(hash, size);
  }

  #note(hash: BlobHash, size: number): void {
    if (size < HELD_LEAST_BYTES) return;
    this.#large.set(hash, size);
    this.version++;
  }

  async #fetch(hash: BlobHash, fetch: Fetch): Promise<void> {
    const fetching = this.withPart(async (part, makeRoom) => {
      await fetch(part, makeRoom);
      this.keep(part, hash);
    });
    this.#fetching.set(hash, fetching);
    try {
      await fetching;
    } finally {
      this.#fetching.delete(hash);
    }
  }

  /** What somebody wrote to is thrown away. */
  #has(hash: BlobHash): boolean {
    const path = this.#pathOf(hash);
    const size = this.#files!.get(hash);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat && stat.size === size && stat.mtimeMs === UNTOUCHED_S * 1000) {
      this.#files!.delete(hash);
      this.#files!.set(hash, size);
      utimesSync(path, this.#options.clock.now() / 1000, UNTOUCHED_S);
      return true;
    }
    this.#forget(hash);
    return false;
  }

  #forget(hash: BlobHash): void {
    rmSync(this.#pathOf(hash), { force: true });
    this.#bytes -= this.#files!.get(hash) ?? 0;
    this.#files!.delete(hash);
    if (this.#large.delete(hash)) this.version++;
    if (this.#trees.remove(hash)) this.version++;
  }

  #makeRoom(bytes: number): void {
    const { maxBytes } = this.#options;
    const fits = (): boolean => this.#bytes + this.#promised + bytes <= maxBytes;
    if (fits()) return;
    for (const hash of [...this.#files!.keys()]) {
      const stat = lstatSync(this.#pathOf(hash), { throwIfNoEntry: false });
      if (this.#pins.has(hash) || (stat && stat.nlink > 1)) continue;
      this.#forget(hash);
      if (fits()) return;
    }
    const used = this.#bytes + this.#promised;
    throw new Unprepared(
      `the cache of this machine is full: ${bytes} bytes more are needed, and ${used} of its ` +
        `${maxBytes} are in use by attempts that run or are kept; free some, or raise ` +
        `agent.cache.maxBytes there`,
      { hostFault: true },
    );
  }

  #diskFull(cause: unknown): Unprepared {
    const message = `no space is left on this machine's disk, at ${this.#options.folder}`;
    return new Unprepared(message, { hostFault: true, cause });
  }

  #pathOf(hash: BlobHash): string {
    const hex = hexOf(hash);
    return join(this.#options.folder, 'files', hex.slice(0, 2), hex);
  }

  /** Looked at when it is needed first: many machines never do. */
  #open(): Promise<void> {
    this.#opening ??= this.#read();
    this.#opening.catch(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #read(): Promise<void> {
    const { folder } = this.#options;
    // Of an earlier agent: what it was fetching is fetched anew.
    await rm(join(folder, 'parts'), { recursive: true, force: true });
    await mkdir(join(folder, 'parts'), { recursive: true, mode: 0o700 });
    for (let first = 0; first < 256; first++) {
      const name = first.toString(16).padStart(2, '0');
      await mkdir(join(folder, 'files', name), { recursive: true, mode: 0o700 });
    }
    const found = await listFiles(join(folder, 'files'), await readdir(join(folder, 'files')));
    this.#files = new Map(found.map(({ hash, size }) => [hash, size]));
    this.#bytes = found.reduce((sum, { size }) => sum + size, 0);
    for (const { hash, size } of found) this.#note(hash, size);
    this.#trees.read((manifest) => this.#files!.has(manifest));
    this.version++;
  }
}
