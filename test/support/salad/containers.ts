/**
 * Containers of the emulator as processes of this machine: each has a home of its own, which is
 * its disk, and when it is killed nothing of it is left.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { killPid, processesOf, startProcess, tail, type TestProcess } from '../processes.ts';
import type { Replica, RunningContainer } from './instances.ts';

export interface Containers {
  run: (replica: Replica) => RunningContainer;
  /** What the last one of them printed. */
  output(): string;
}

export function createContainers(folder: string): Containers {
  let last: TestProcess | undefined;
  return {
    run({ command, environment }) {
      const home = mkdtempSync(join(folder, 'container-'));
      const env = { ...environment, HOME: home };
      const main = startProcess([...command], { cwd: home, env });
      last = main;
      return {
        ended: main.ended.then(({ code }) => code ?? 1),
        kill() {
          for (const { pid } of processesOf([home])) killPid(pid, 'SIGKILL');
          // One that was just being started when we looked.
          for (const { pid } of processesOf([home])) killPid(pid, 'SIGKILL');
          rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
        },
      };
    },
    output: () => tail(last?.output() ?? ''),
  };
}
