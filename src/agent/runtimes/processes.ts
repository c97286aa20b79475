/** Processes as /proc shows them: who is who, who belongs to an attempt, and ending them. */
import { readFileSync, readdirSync } from 'node:fs';
import type { Processes } from './folder.ts';

export const ATTEMPT_MARKER = 'DROVER_ATTEMPT_UID';

interface ProcessStat {
  state: string;
  group: number;
  session: number;
  /** Start time in ticks since boot. */
  began: string;
}

export function readProcess(pid: number): ProcessStat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    // No such process: the only way this read fails.
    return undefined;
  }
  // The name, in brackets, may itself hold spaces and brackets.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    state: fields[0]!,
    group: Number(fields[2]),
    session: Number(fields[3]),
    began: fields[19]!,
  };
}

/** True only for the very process that was recorded: a reused pid has another start time. */
export function isSameProcess(pid: number, began: string): boolean {
  const found = readProcess(pid);
  return found !== undefined && found.began === began && found.state !== 'Z' && found.state !== 'X';
}

/** False when it was gone already, or became another user's and is out of reach. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ESRCH' || code === 'EPERM') return false;
    throw error;
  }
}

/**
 * To the task's group. Before the task became a group leader there is no such group, but then it
 * has no children either, so the process itself will do.
 */
export function signalGroup(processes: Processes, signal: NodeJS.Signals): void {
  if (!sendSignal(-processes.task, signal)) sendSignal(processes.task, signal);
}

/**
 * What is left of an attempt where no cgroup holds it together: members of its group or session,
 * and whoever was born with its marker. Zombies are not counted: where nobody reaps, they stay for
 * ever.
 */
export function findByMarker(uid: string, processes: Processes): number[] {
  const marker = `\0${ATTEMPT_MARKER}=${uid}\0`;
  const leader = readProcess(processes.task);
  // A number in use again was free before: then nobody of ours is left in that group.
  const groupIsOurs = leader === undefined || leader.began === processes.taskBegan;
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const stat = readProcess(pid);
    if (!stat || stat.state === 'Z' || Number(stat.began) < Number(processes.taskBegan)) continue;
    const inGroup = stat.group === processes.task || stat.session === processes.task;
    if ((inGroup && groupIsOurs) || hasMarker(pid, marker)) found.push(pid);
  }
  return found;
}

function hasMarker(pid: number, marker: string): boolean {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`.includes(marker);
  } catch {
    // Gone meanwhile, or another user's, which is not an attempt of ours.
    return false;
  }
}
