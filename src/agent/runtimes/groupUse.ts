/** What a cgroup has used of CPU and memory, of either version. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from './folder.ts';
import type { Use } from './use.ts';

/** Memory that the kernel would give back for the asking, read files, does not count. */
export function groupUse(directories: string[]): Partial<Use> {
  const use: Partial<Use> = {};
  for (const directory of directories) {
    const nanoseconds = Number(readLines(join(directory, 'cpuacct.usage'))[0]);
    const microseconds = fieldOf(directory, 'cpu.stat', 'usage_usec');
    if (nanoseconds >= 0) use.cpuMs = nanoseconds / 1e6;
    else if (microseconds !== undefined) use.cpuMs = microseconds / 1e3;
    for (const [file, cached] of MEMORY_FILES) {
      const bytes = Number(readLines(join(directory, file))[0]);
      if (!(bytes >= 0)) continue;
      use.memoryBytes = Math.max(0, bytes - (fieldOf(directory, 'memory.stat', cached) ?? 0));
    }
  }
  return use;
}

const MEMORY_FILES = [
  ['memory.current', 'inactive_file'],
  ['memory.usage_in_bytes', 'total_inactive_file'],
] as const;

function fieldOf(directory: string, file: string, name: string): number | undefined {
  const line = readLines(join(directory, file)).find((text) => text.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

export function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean);
  } catch (error) {
    // The group is gone (ENODEV while it goes): nobody is in it.
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENODEV') return [];
    throw error;
  }
}
