/**
 * Ends what an exec started. Each exec is the leader of a session of its own, which its children
 * stay in even where a shell gives them process groups of their own.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { sleep, type Clock } from '../../lib/clock.ts';

/** From the hangup to the kill, for a shell that writes its history. */
const HANGUP_GRACE_MS = 2_000;
const LOOK_AGAIN_MS = 50;

/** Returns when no process of the session is left. */
export async function endSession(leader: number, clock: Clock): Promise<void> {
  let left = sessionProcesses(leader);
  for (const pid of left) {
    signalProcess(pid, 'SIGHUP');
    // A stopped process acts on the hangup only once continued.
    signalProcess(pid, 'SIGCONT');
  }
  for (let waitedMs = 0; left.length > 0; waitedMs += LOOK_AGAIN_MS) {
    await sleep(clock, LOOK_AGAIN_MS);
    left = sessionProcesses(leader);
    if (waitedMs >= HANGUP_GRACE_MS) for (const pid of left) signalProcess(pid, 'SIGKILL');
  }
}

/**
 * The group that has the terminal, as Ctrl-C would reach it; without a terminal the leader's own.
 */
export function signalForeground(leader: number, signal: NodeJS.Signals): void {
  const foreground = readStat(leader)?.foregroundGroup ?? 0;
  signalProcess(foreground > 0 ? -foreground : -leader, signal);
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // Gone meanwhile, which is what was wanted.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function sessionProcesses(leader: number): number[] {
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = readStat(pid);
    if (stat !== undefined && stat.session === leader && stat.state !== 'Z') found.push(pid);
  }
  return found;
}

/** See proc(5). The command's name is in parentheses and may contain anything, also those. */
function readStat(
  pid: number,
): { state: string; session: number; foregroundGroup: number } | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', , , session, , foregroundGroup] = fields;
  return { state, session: Number(session), foregroundGroup: Number(foregroundGroup) };
}
