/**
 * What one attempt's output must not show: its secrets, and its tokens of other services, of which
 * it gets new ones while it runs. A new one is written to the list before the attempt can read it,
 * so whoever reads output first and the list then misses none.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { MASKS_FILE, readMasks, TOKEN_MASKS_FILE } from './masks.ts';

export class AttemptMasks {
  readonly #tokensPath: string;
  readonly #secrets: readonly Buffer[];
  #all: readonly Buffer[];
  /** Null: it has no tokens, and never will. */
  #seen: string | null;

  constructor(home: string) {
    this.#tokensPath = join(home, TOKEN_MASKS_FILE);
    this.#secrets = readMasks(join(home, MASKS_FILE));
    this.#seen = this.#version();
    this.#all = this.#read();
  }

  now(): readonly Buffer[] {
    if (this.#seen === null) return this.#all;
    const version = this.#version();
    // Gone with all its files: what is still in the pipe is hidden as before.
    if (version === null || version === this.#seen) return this.#all;
    this.#seen = version;
    this.#all = this.#read();
    return this.#all;
  }

  #read(): readonly Buffer[] {
    return [...readMasks(this.#tokensPath), ...this.#secrets];
  }

  /** It is replaced, never changed: another file is another list. */
  #version(): string | null {
    const found = statSync(this.#tokensPath, { throwIfNoEntry: false });
    return found ? `${found.ino} ${found.mtimeMs}` : null;
  }
}
