/** Processes that belong to a test's folder, found to be looked at or ended. */
import { readdirSync, readFileSync } from 'node:fs';

/** Ends processes that name this folder, which is this test's alone. */
export function sweep(folder: string): void {
  for (const { pid } of processesOf(folder)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone meanwhile.
    }
  }
}

interface Seen {
  pid: number;
  command: string;
  environment: string;
}

/** Processes with the folder in their command line or environment. */
export function processesOf(folder: string): Seen[] {
  const found: Seen[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
      if (`${command} ${environment}`.includes(folder)) found.push({ pid, command, environment });
    } catch {
      // Gone meanwhile, or another user's.
    }
  }
  return found;
}
