/**
 * Hashes of files as they were when last sent, so that sending again reads only what changed. The
 * cache is a help: one that is damaged or gone costs time, never a wrong answer.
 */
import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { isBlobHash, type BlobHash } from '../../model/blob.ts';
import type { Environment } from '../environment.ts';
import type { FoundFile } from './walk.ts';

/** A file younger than this may change again without a new time: its hash is not kept. */
const SETTLED_MS = 2000;

type Entry = [size: number, mtimeNs: string, inode: string, hash: string];

export interface HashCache {
  get(file: FoundFile): BlobHash | undefined;
  set(file: FoundFile, hash: BlobHash): void;
  /** Only what was asked for or set is kept. */
  save(): void;
}

export function openHashCache(env: Environment, root: string, nowMs: number): HashCache {
  const folder = path.join(
    env['XDG_CACHE_HOME'] || path.join(env['HOME'] || homedir(), '.cache'),
    'drover',
    'hashes',
  );
  const file = path.join(folder, `${hash('sha256', root)}.json`);
  const old = readEntries(file);
  const kept: Record<string, Entry> = {};
  return {
    get(one) {
      const entry = Object.hasOwn(old, one.path) ? old[one.path] : undefined;
      if (!Array.isArray(entry)) return undefined;
      const [size, mtimeNs, inode, found] = entry;
      const same = size === one.size && mtimeNs === `${one.mtimeNs}` && inode === `${one.inode}`;
      if (!same || typeof found !== 'string' || !isBlobHash(found)) return undefined;
      kept[one.path] = entry;
      return found;
    },
    set(one, found) {
      if (nowMs - Number(one.mtimeNs / 1_000_000n) < SETTLED_MS) return;
      kept[one.path] = [one.size, `${one.mtimeNs}`, `${one.inode}`, found];
    },
    save() {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const fresh = `${file}.${process.pid}`;
      writeFileSync(fresh, JSON.stringify({ version: 1, root, files: kept }), { mode: 0o600 });
      renameSync(fresh, file);
    },
  };
}

function readEntries(file: string): Record<string, Entry> {
  try {
    const read = JSON.parse(readFileSync(file, 'utf8')) as { version?: number; files?: unknown };
    const { version, files } = read;
    const usable = version === 1 && typeof files === 'object' && files !== null;
    return usable ? (files as Record<string, Entry>) : {};
  } catch {
    // Not there yet, or cut short: everything is hashed again.
    return {};
  }
}
