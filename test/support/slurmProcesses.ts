/** What runs on a node of the tests' Slurm, although all nodes are one machine. */
import { readFileSync, readdirSync } from 'node:fs';
import { processesOf } from './processes.ts';

/** What Slurm started on the node: its step daemons, and everything below them. */
export function processesOn(node: string, conf: string): number[] {
  const ours = new Set(processesOf([conf]).map(({ pid }) => pid));
  const marked = [...ours].filter((pid) =>
    readProcess(pid, 'environ').split('\0').includes(`SLURMD_NODENAME=${node}`),
  );
  const isStepDaemon = (pid: number): boolean => readProcess(pid, 'cmdline').includes('slurmstepd');
  const found = new Set(marked);
  for (const pid of marked) if (isStepDaemon(parentOf(pid))) found.add(parentOf(pid));
  for (const name of readdirSync('/proc'))
    if (descendsFrom(Number(name), found)) found.add(Number(name));
  return [...found];
}

function descendsFrom(pid: number, ancestors: Set<number>): boolean {
  for (let at = pid; at > 1; at = parentOf(at)) if (ancestors.has(at)) return true;
  return false;
}

function parentOf(pid: number): number {
  const stat = readProcess(pid, 'stat');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? 0);
}

function readProcess(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch {
    // It ended meanwhile.
    return '';
  }
}
