/** Runs a profiler that is installed on the machine. */
import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { DroverError } from '../../../lib/errors.ts';
import type { ProfileOrder } from './profile.ts';

/** Beyond the time it samples, for starting and for writing the result. */
const TOOL_GRACE_MS = 60_000;
const OUTPUT_BYTES = 64 * 1024 * 1024;
const REASON_CHARACTERS = 400;

/** Throws what to install where it is not there. */
export function findTool(name: string, path: string, install: string): string {
  for (const folder of path.split(delimiter)) {
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not in this one.
    }
  }
  throw new DroverError(
    'UNAVAILABLE',
    `there is no ${name} in the task or on its machine: ${install}`,
  );
}

/** Resolves with what it printed. */
export function runTool(file: string, args: string[], order: ProfileOrder): Promise<string> {
  const options = {
    env: { PATH: order.path, HOME: tmpdir(), LC_ALL: 'C.UTF-8' },
    maxBuffer: OUTPUT_BYTES,
    timeout: order.seconds * 1000 + TOOL_GRACE_MS,
    signal: order.signal,
  };
  return new Promise((resolve, reject) => {
    execFile(file, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const reason = (stderr.trim() || error.message).slice(0, REASON_CHARACTERS);
      reject(
        new DroverError('UNAVAILABLE', `${args[0]} of ${file} failed: ${reason}`, { cause: error }),
      );
    });
  });
}

export async function inTemporaryFolder<Result>(
  act: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-profile-'));
  try {
    return await act(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
