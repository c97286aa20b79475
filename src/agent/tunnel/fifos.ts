/** Named pipes, and a gate made of one: a command waits at it until it was put where it belongs. */
import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Fifos {
  paths: string[];
  /** What has them open keeps them. */
  remove: () => Promise<void>;
}

export async function makeFifos(names: string[]): Promise<Fifos> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-exec-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const paths = names.map((name) => join(folder, name));
  try {
    await promisify(execFile)('mkfifo', ['-m', '600', ...paths]);
  } catch (error) {
    await remove();
    throw error;
  }
  return { paths, remove };
}

export interface Gate {
  /** The command reads a line from it before it begins. */
  path: string;
  open(): void;
  /** Not before the command has passed, or is ended. */
  remove(): Promise<void>;
}

export async function makeGate(): Promise<Gate> {
  const { paths, remove } = await makeFifos(['gate']);
  const path = paths[0]!;
  // Both ends at once, so that the open waits for nobody and the line waits for the command.
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  return {
    path,
    open: () => void writeSync(fd, '\n'),
    async remove() {
      closeSync(fd);
      await remove();
    },
  };
}
