/** Folders of which a cache holds every file: how large each is, by its manifest, also on disk. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hexOf, isBlobHash, type BlobHash } from '../../model/blob.ts';

export class TreeNotes {
  readonly #folder: string;
  readonly #trees = new Map<BlobHash, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  all(): ReadonlyMap<BlobHash, number> {
    return this.#trees;
  }

  /** False where it is known already. */
  add(manifest: BlobHash, bytes: number): boolean {
    if (this.#trees.get(manifest) === bytes) return false;
    this.#trees.set(manifest, bytes);
    writeFileSync(join(this.#folder, hexOf(manifest)), String(bytes), { mode: 0o600 });
    return true;
  }

  remove(manifest: BlobHash): boolean {
    if (!this.#trees.delete(manifest)) return false;
    rmSync(join(this.#folder, hexOf(manifest)), { force: true });
    return true;
  }

  /** What an earlier agent wrote, of manifests that are still there. */
  read(isThere: (manifest: BlobHash) => boolean): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#folder)) {
      const file = join(this.#folder, name);
      const manifest = `sha256:${name}`;
      const bytes = Number(readFileSync(file, 'latin1'));
      if (isBlobHash(manifest) && isThere(manifest) && Number.isSafeInteger(bytes)) {
        this.#trees.set(manifest, bytes);
      } else rmSync(file, { force: true });
    }
  }
}
