/** Which processors a process runs on, so that a load and what it loads do not share any. */
import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';

export interface Halves {
  server: string;
  load: string;
}

/** Undefined where there is only one processor: then nothing can be kept apart. */
export function halves(): Halves | undefined {
  const count = cpus().length;
  if (count < 2) return undefined;
  const middle = Math.floor(count / 2);
  return { server: `0-${middle - 1}`, load: `${middle}-${count - 1}` };
}

/** This process with all its threads; what it starts later inherits it. */
export function pin(processors: string): void {
  execFileSync('taskset', ['-a', '-c', '-p', processors, String(process.pid)], { stdio: 'ignore' });
}
