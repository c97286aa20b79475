/** The shell of this machine: for a controller that runs where the programs are. */
import { spawn } from 'node:child_process';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import type { RemoteShell, RunOptions, RunResult } from './contract.ts';
import { converse, listen } from './conversation.ts';
import { ownEnvironment } from './environment.ts';

const DEFAULT_TIMEOUT_MS = 60_000;

export function createLocalShell({ clock, random }: { clock: Clock; random: Random }): RemoteShell {
  const running = new Set<() => void>();
  const run = async (
    command: string | readonly string[],
    { stdin, timeoutMs = DEFAULT_TIMEOUT_MS }: RunOptions = {},
  ): Promise<RunResult> => {
    const mark = `drover-${random.hex(8)}`;
    // A group of its own, so that what hangs ends with it; what used setsid stays.
    const child = spawn('/bin/sh', ['-c', listen(mark)], {
      env: ownEnvironment(),
      detached: true,
    });
    const stop = (): void => endGroup(child.pid);
    running.add(stop);
    const outcome = await converse({ child, mark, command, stdin, timeoutMs, stop, clock });
    running.delete(stop);
    if (outcome.kind !== 'unsaid') return outcome;
    const reason = `/bin/sh does not answer: ${outcome.stderr || 'it said nothing'}`;
    return { kind: 'unreachable', problem: outcome.late ? 'timeout' : 'shell', reason };
  };
  return {
    name: 'this machine',
    run,
    async close() {
      for (const stop of running) stop();
    },
  };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // All of it has ended, which is what was wanted.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
