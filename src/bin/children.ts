/** A child process of `drover up`: started again when it dies, until it is stopped. */
import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ChildLog } from './childLog.ts';

/** Requests live for milliseconds: with room to die young they are never copied. */
const EXEC_ARGV = [...process.execArgv, '--max-semi-space-size=32'];
const EXECUTABLE = fileURLToPath(new URL('./drover.ts', import.meta.url));
const FIRST_RESTART_MS = 100;
const LONGEST_RESTART_MS = 10_000;
/** A child that lived this long had a good start: its next restart is quick again. */
const GOOD_LIFE_MS = 10_000;

export interface Child {
  stop(): Promise<void>;
}

export interface ChildOptions {
  args: string[];
  /** Read at every start. */
  env: NodeJS.ProcessEnv;
  log: ChildLog;
  ready?: (message: Record<string, unknown>) => void;
  /** It ended before it was ever up: trying again would change nothing. */
  neverUp?: (code: number) => void;
  /** It ended and is started again in so many milliseconds. */
  restarts: (how: string, delayMs: number) => void;
}

export function keepChild(options: ChildOptions): Child {
  const { args, env, log } = options;
  let child: ChildProcess;
  let stopping = false;
  let failures = 0;
  let everUp = false;
  let timer: NodeJS.Timeout | undefined;
  const start = (): void => {
    const startedAt = performance.now();
    child = fork(EXECUTABLE, args, {
      env,
      // Its own group: Ctrl-C is for this process, which stops its children in order.
      detached: true,
      execArgv: EXEC_ARGV,
      stdio: ['ignore', log.fd, log.fd, 'ipc'],
    });
    if (child.pid !== undefined) log.follow(child.pid);
    child.on('message', (message: Record<string, unknown>) => {
      everUp = true;
      options.ready?.(message);
    });
    child.on('exit', (code, signal) => {
      log.catchUp();
      if (stopping) return;
      if (!everUp && options.neverUp) {
        options.neverUp(code ?? 1);
        return;
      }
      failures = performance.now() - startedAt > GOOD_LIFE_MS ? 0 : failures + 1;
      const longMs = Math.min(LONGEST_RESTART_MS, FIRST_RESTART_MS * 2 ** failures);
      const delayMs = failures === 0 ? 0 : longMs;
      options.restarts(signal ?? `exit code ${code}`, delayMs);
      timer = setTimeout(start, delayMs);
    });
  };
  start();
  return {
    async stop() {
      stopping = true;
      clearTimeout(timer);
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    },
  };
}
