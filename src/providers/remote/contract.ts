/**
 * A shell on some machine: this one, or one that is reached by OpenSSH. Every place has a plain
 * POSIX `sh`; nothing else is taken for granted. What could not be said to it is `unreachable`,
 * what was said and not answered is `lost`: the two must never be mixed up.
 */
import type { Readable } from 'node:stream';

export interface RemoteShell {
  /** For people: `this machine`, or `user@host:22`. */
  readonly name: string;
  /**
   * Runs a script by `sh`, or a program with its arguments. Both travel on standard input, so that
   * they never appear in the list of processes on the other side, whatever its login shell is.
   */
  run(command: string | readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Ends what is held open; what runs is `lost`. */
  close(): Promise<void>;
}

export interface RunOptions {
  /** What the command reads; without it, nothing. */
  stdin?: string | Uint8Array | Readable;
  /** From now until its end; connecting has a limit of its own. */
  timeoutMs?: number;
}

export type RunResult =
  | { kind: 'ended'; code: number; stdout: string; stderr: string }
  /** It was not started. */
  | { kind: 'unreachable'; problem: Problem; reason: string }
  /** It was sent, and its end was not heard: it may have run, may run, or may never. */
  | { kind: 'lost'; reason: string };

/**
 * host-key: it is not the one we know, or we know none. credentials: it does not let us in.
 * network: nobody there, or no way there. timeout: no answer in time. shell: it let us in, but no
 * `sh` answers. client: there is no `ssh` here.
 */
export const PROBLEMS = [
  'host-key',
  'credentials',
  'network',
  'timeout',
  'shell',
  'client',
] as const;
export type Problem = (typeof PROBLEMS)[number];

/** A person must change something before it can work. */
export function needsPerson(problem: Problem): boolean {
  return problem === 'host-key' || problem === 'credentials' || problem === 'client';
}
