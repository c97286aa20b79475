/** Whether the cache can be used from where attempts lie. */
import { linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DroverError } from '../../lib/errors.ts';

/** Attempts get hard links into it, so both must be on one disk; told at the start, not later. */
export function checkCacheFolder(folder: string, dataDir: string): void {
  const probe = `probe-${process.pid}`;
  const [file, other] = [join(folder, probe), join(dataDir, probe)];
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    rmSync(other, { force: true });
    writeFileSync(file, '');
    linkSync(file, other);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'EXDEV' ? `it is on another disk than ${dataDir}` : message;
    throw new DroverError('INVALID_ARGUMENT', `cannot use the cache ${folder}: ${why}`, {
      hint: 'Set agent.cache.folder to a folder of this user on the disk of agent.dataDir.',
      cause: error,
    });
  } finally {
    for (const path of [file, other]) rmSync(path, { force: true });
  }
}
