/**
 * Blobs as files: FOLDER/<tenant>/<two digits>/<64 digits>, written in FOLDER/.tmp and renamed,
 * with file and folder on disk before `put` resolves.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, opendir, rename, rm, stat, unlink, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { filePieces } from '../../lib/filePieces.ts';
import { HashThread } from '../../lib/hashThread.ts';
import { type BlobHash, hexOf, isBlobHash } from '../../model/blob.ts';
import { eachAtOnce } from '../atOnce.ts';
import type { BlobContent, BlobEntry, BlobRange, BlobStat, BlobStore } from '../contract.ts';
import { noSuchBlob } from '../errors.ts';
import { BLOB_LIMITS } from '../limits.ts';
import { tenantFolder } from '../names.ts';
import { Stated } from '../verify.ts';
import { ifThere, onDisk } from './diskErrors.ts';
import { leftoverPrefix, sweepLeftovers } from './leftovers.ts';
import { writeAll } from './writeAll.ts';

export interface FileBlobStoreOptions {
  folder: string;
  clock: Clock;
  /** See BLOB_LIMITS. */
  refreshMs?: number;
}

/** Rejects where the folder cannot be made or written. */
export async function openFileBlobStore(options: FileBlobStoreOptions): Promise<BlobStore> {
  const { folder, clock } = options;
  // No tenant's folder begins with a dot.
  const temporary = join(folder, '.tmp');
  await onDisk(`use the folder ${folder}`, async () => {
    await mkdir(temporary, { recursive: true, mode: 0o700 });
    await sweepLeftovers(temporary, clock);
    const probe = join(temporary, `${leftoverPrefix()}-${randomUUID()}`);
    await (await open(probe, 'wx', 0o600)).close();
    await unlink(probe);
  });
  return new FileBlobStore(options, temporary);
}

class FileBlobStore implements BlobStore {
  readonly kind = 'files';
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #temporary: string;
  readonly #refreshMs: number;
  readonly #hashThread = new HashThread();

  constructor(options: FileBlobStoreOptions, temporary: string) {
    const { folder, clock, refreshMs = BLOB_LIMITS.refreshMs } = options;
    this.#refreshMs = refreshMs;
    this.#folder = folder;
    this.#clock = clock;
    this.#temporary = temporary;
  }

  async put(
    tenant: string,
    hash: BlobHash,
    size: number,
    content: BlobContent,
  ): Promise<{ created: boolean }> {
    if (await this.#found(tenant, hash)) return { created: false };
    const name = join(this.#temporary, `${leftoverPrefix()}-${randomUUID()}`);
    try {
      await writeAll(name, content, new Stated(hash, size), this.#hashThread);
      await onDisk('store the blob', () => publish(name, this.#path(tenant, hash)));
    } catch (error) {
      await rm(name, { force: true });
      throw error;
    }
    return { created: true };
  }

  async open(tenant: string, hash: BlobHash, range?: BlobRange): Promise<Readable> {
    const file = await ifThere('read the blob', () => open(this.#path(tenant, hash), 'r'));
    if (!file) throw noSuchBlob(hash);
    return file.createReadStream({ ...range, highWaterMark: BLOB_LIMITS.bufferBytes });
  }

  async pieces(
    tenant: string,
    hash: BlobHash,
    range?: BlobRange,
  ): Promise<AsyncGenerator<Uint8Array>> {
    // Opened with the first piece: whoever asks for none has nothing to close.
    if (!(await this.stat(tenant, hash))) throw noSuchBlob(hash);
    return filePieces(this.#path(tenant, hash), range);
  }

  async stat(tenant: string, hash: BlobHash): Promise<BlobStat | undefined> {
    return statOf(this.#path(tenant, hash));
  }

  async missing(tenant: string, hashes: readonly BlobHash[]): Promise<BlobHash[]> {
    const wanted = [...new Set(hashes)];
    const found = await eachAtOnce(wanted, (hash) => this.#found(tenant, hash));
    return wanted.filter((_, index) => !found[index]);
  }

  async remove(tenant: string, hash: BlobHash): Promise<boolean> {
    const path = this.#path(tenant, hash);
    return (await ifThere('remove the blob', () => done(unlink(path)))) ?? false;
  }

  async *list(tenant: string): AsyncGenerator<BlobEntry> {
    const home = join(this.#folder, tenantFolder(tenant));
    for await (const part of namesIn(home)) {
      for await (const name of namesIn(join(home, part))) {
        const hash = `sha256:${name}`;
        if (!isBlobHash(hash)) continue;
        const known = await statOf(join(home, part, name));
        if (known) yield { hash, ...known };
      }
    }
  }

  signedUrl(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  close(): Promise<void> {
    return this.#hashThread.end();
  }

  #path(tenant: string, hash: BlobHash): string {
    const hex = hexOf(hash);
    return join(this.#folder, tenantFolder(tenant), hex.slice(0, 2), hex);
  }

  /** Whether it is there; if so it counts as wanted from now on. */
  async #found(tenant: string, hash: BlobHash): Promise<boolean> {
    const path = this.#path(tenant, hash);
    const known = await statOf(path);
    if (!known) return false;
    const nowMs = this.#clock.now();
    if (nowMs - known.modifiedAtMs < this.#refreshMs) return true;
    // Collected in this very moment: it has to be sent again.
    const wanted = (): Promise<true> => done(utimes(path, nowMs / 1000, nowMs / 1000));
    return (await ifThere('mark the blob as wanted', wanted)) ?? false;
  }
}

async function publish(name: string, path: string): Promise<void> {
  const folder = dirname(path);
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  await rename(name, path);
  await syncFolder(folder);
  // New folders are entries of folders too: from the lowest up to where the first one was made.
  if (first === undefined) return;
  for (let at = folder; at.length >= first.length; at = dirname(at)) {
    await syncFolder(dirname(at));
  }
}

async function done(doing: Promise<void>): Promise<true> {
  await doing;
  return true;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function statOf(path: string): Promise<BlobStat | undefined> {
  const found = await ifThere('look at the blob', () => stat(path));
  return found && { size: found.size, modifiedAtMs: Math.round(found.mtimeMs) };
}

/** Nothing where there is no such folder. */
async function* namesIn(path: string): AsyncGenerator<string> {
  const folder = await ifThere('list the blobs', () => opendir(path));
  if (!folder) return;
  for await (const entry of folder) yield entry.name;
}
