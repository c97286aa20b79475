/** What an attempt has used: by its cgroup where it has one, else by its processes that live. */
import { readFileSync } from 'node:fs';
import type { CgroupHost } from './cgroups.ts';

export interface Use {
  /** Since it started. */
  cpuMs: number;
  /** Now. */
  memoryBytes: number;
}

/** Linux tells CPU time in these, on every machine we run on. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

export function useOf(
  cgroups: CgroupHost | undefined,
  directories: string[],
  pids: () => number[],
): Use {
  const known = directories.length > 0 ? (cgroups?.use(directories) ?? {}) : {};
  const { cpuMs, memoryBytes } = known;
  if (cpuMs !== undefined && memoryBytes !== undefined) return { cpuMs, memoryBytes };
  return { ...sumOf(pids()), ...known };
}

/** The time of children that have ended is in their parent's once it has waited for them. */
export function sumOf(pids: readonly number[], proc = '/proc'): Use {
  const sum = { cpuMs: 0, memoryBytes: 0 };
  for (const pid of pids) {
    try {
      const stat = readFileSync(`${proc}/${pid}/stat`, 'latin1');
      const memory = readFileSync(`${proc}/${pid}/statm`, 'latin1').split(' ');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const ticks = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0);
      sum.cpuMs += ticks * TICK_MS;
      sum.memoryBytes += Number(memory[1]) * PAGE_BYTES;
    } catch {
      // It has ended in between.
    }
  }
  return sum;
}
