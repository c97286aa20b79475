/**
 * What the runtime needs before it can start: its folder to itself, and two of the system's tools.
 */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { DroverError } from '../../lib/errors.ts';
import { readIfThere, replaceFile, type DataFolder } from './folder.ts';
import { isSameProcess, readProcess } from './processes.ts';

/** Writes down that this process is the agent; refuses while another one lives. */
export function claimFolder(folder: DataFolder): void {
  const [pid, began] = (readIfThere(folder.agentPid) ?? '').trim().split(' ');
  const other = Number(pid);
  if (other > 0 && other !== process.pid && isSameProcess(other, began ?? '')) {
    throw new DroverError('CONFLICT', `another agent (pid ${other}) uses this data folder`, {
      hint: 'Stop it first, or give this one another folder with --data.',
    });
  }
  replaceFile(folder.agentPid, `${process.pid} ${readProcess(process.pid)?.began}\n`);
}

export function findTool(name: string): string {
  for (const place of (process.env['PATH'] ?? '/usr/bin:/bin').split(delimiter)) {
    const path = join(place, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not here: the next place.
    }
  }
  throw new DroverError('UNAVAILABLE', `the program ${name} is not on the PATH`, {
    hint: 'Install util-linux and coreutils, which every Linux distribution has.',
  });
}
