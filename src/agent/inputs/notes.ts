/** What an address held when it was last asked: its tag then, and the hash of the bytes. */
import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isBlobHash, type BlobHash } from '../../model/blob.ts';

interface Note {
  etag: string;
  hash: BlobHash;
}

export interface SourceNotes {
  read(address: string): Note | undefined;
  write(address: string, note: Note): void;
}

/** In a folder, one small file per address, called by its hash: addresses may hold passwords. */
export function createNotes(folder: string): SourceNotes {
  const fileOf = (address: string): string => join(folder, hash('sha256', address));
  return {
    read(address) {
      try {
        const { etag, hash: found } = JSON.parse(readFileSync(fileOf(address), 'utf8')) as Note;
        return typeof etag === 'string' && isBlobHash(found) ? { etag, hash: found } : undefined;
      } catch {
        // None yet, or cut short: it is fetched as if for the first time.
        return undefined;
      }
    },
    write(address, note) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const file = fileOf(address);
      writeFileSync(`${file}.new`, JSON.stringify(note), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
  };
}
