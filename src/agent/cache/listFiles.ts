/** What a cache's folder holds, the least recently used first. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isBlobHash, type BlobHash } from '../../model/blob.ts';

export interface CachedFile {
  hash: BlobHash;
  size: number;
}

export async function listFiles(folder: string, prefixes: string[]): Promise<CachedFile[]> {
  const found: (CachedFile & { usedAtMs: number })[] = [];
  for (const prefix of prefixes) {
    const names = await readdir(join(folder, prefix));
    await Promise.all(
      names.map(async (name) => {
        const hash = `sha256:${name}`;
        const stat = await lstat(join(folder, prefix, name));
        if (isBlobHash(hash)) found.push({ hash, size: stat.size, usedAtMs: stat.atimeMs });
      }),
    );
  }
  return found.toSorted((a, b) => a.usedAtMs - b.usedAtMs);
}
