/**
 * Files that a job may have put in place of what we expect: a link would make the agent read or
 * write for it elsewhere, a pipe would make it wait for ever.
 */
import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs';

const SAFE = constants.O_NOFOLLOW | constants.O_NONBLOCK;
const READ = constants.O_RDONLY | SAFE;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | SAFE;

/** Undefined when there is nothing there, or no plain file. */
export function openPlainFile(path: string): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, READ);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ELOOP' || code === 'ENXIO') return undefined;
    throw error;
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return undefined;
}

/** In one write, so that a line is there or not. Throws where there is no plain file. */
export function appendToPlainFile(path: string, text: string): void {
  const fd = openSync(path, APPEND, 0o600);
  try {
    if (!fstatSync(fd).isFile()) throw new Error(`${path} is no plain file`);
    writeSync(fd, text);
  } finally {
    closeSync(fd);
  }
}
