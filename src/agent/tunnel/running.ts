/** The attempt a stream is about, as it runs on this machine now. */
import { DroverError } from '../../lib/errors.ts';

/** Where an attempt's commands run; given by the runtime for attempts that run here. */
export interface ExecContext {
  cwd: string;
  /** Complete. */
  env: Record<string, string>;
  /** Put before a command that shall run inside its container, without or with a terminal. */
  enter?: { piped: string[]; terminal: string[] };
  /** Called before the command begins: none of its processes escapes the attempt's limits. */
  joinCgroup?: (pid: number) => void;
  /** The processes of the attempt. */
  members(): number[];
}

export type FindRunning = (attemptUid: string) => ExecContext | undefined;

export function requireRunning(find: FindRunning, attemptUid: string): ExecContext {
  const context = find(attemptUid);
  if (context !== undefined) return context;
  throw new DroverError('NOT_FOUND', `attempt ${attemptUid} does not run on this machine now`);
}
