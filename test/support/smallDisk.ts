/** A disk of a few megabytes that a test can fill and empty again. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface SmallDisk {
  folder: string;
  /** Takes every byte that is left. */
  fill(): void;
  empty(): void;
  remove(): void;
}

export function mountSmallDisk(megabytes: number): SmallDisk {
  const folder = mkdtempSync(path.join(tmpdir(), 'drover-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder]);
  } catch (cause) {
    throw new Error('a small disk cannot be mounted: run the tests as root', { cause });
  }
  const filler = path.join(folder, 'filler');
  return {
    folder,
    fill() {
      const descriptor = openSync(filler, 'a');
      for (let size = 1 << 20; size > 0;) {
        try {
          writeSync(descriptor, Buffer.alloc(size));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
          size >>= 1;
        }
      }
      closeSync(descriptor);
    },
    empty: () => rmSync(filler, { force: true }),
    remove() {
      // Lazily: where a test failed, a process may still be in it.
      execFileSync('umount', ['--lazy', folder]);
      rmSync(folder, { recursive: true });
    },
  };
}
