/** What exec needs of a running command, with a terminal or with pipes. */
import type { Readable } from 'node:stream';

export interface ExecExitStatus {
  code: number | null;
  signal: string | null;
}

export interface ExecProcess {
  /** Leader of its own session. */
  pid: number;
  /** Read them with back-pressure; they may stay open after the exit if a child holds them. */
  outputs: { channel: number; readable: Readable }[];
  exited: Promise<ExecExitStatus>;
  /** Resolves when the command took it. What it will not read any more is dropped. */
  write(bytes: Uint8Array): Promise<void>;
  endInput(): Promise<void>;
  resize(cols: number, rows: number): void;
  /** Lets go of terminal or pipes; the outputs end. */
  release(): void;
}

export interface ExecCommand {
  command: string[];
  cwd: string;
  env: Record<string, string>;
  /** A file from which a line must be read before the command may begin. */
  gate?: string;
}

/**
 * A shell finds the command and replaces itself by it, so that a command that is missing ends with
 * 127 or 126 and a message, as everywhere.
 */
export function shellArguments({ command, gate }: ExecCommand): [string, string[]] {
  if (gate === undefined) return ['/bin/sh', ['-c', 'exec "$@"', 'drover-exec', ...command]];
  const script = 'read -r _ < "$1" && shift && exec "$@"';
  return ['/bin/sh', ['-c', script, 'drover-exec', gate, ...command]];
}
