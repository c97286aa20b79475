/**
 * Exec from a terminal: connects it to a command in a task, and gives the terminal back as it was.
 */
import type { Readable, Writable } from 'node:stream';
import { DroverError } from '../lib/errors.ts';
import { connectExec, type ExecSession } from '../protocol/tunnel/execClient.ts';
import type { ExecExit, ExecSignal } from '../protocol/tunnel/exec.ts';
import { constants } from 'node:os';
import { escapeFilter } from './execEscape.ts';

export interface RunExecOptions {
  /** See `execUrl(server, task)`. */
  url: string;
  token: string;
  command: string[];
  /** Default: when both stdin and stdout are terminals. */
  tty?: boolean;
  /** Added to the task's environment; TERM is added for a terminal. */
  env?: Record<string, string>;
  stdin?: Readable & { isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  stdout?: Writable & { isTTY?: boolean; columns?: number; rows?: number };
  stderr?: Writable;
}

/** As shells do: 128 and the signal's number. */
const SIGNAL_BASE = 128;
const LEAVING_SIGNALS = ['SIGTERM', 'SIGHUP'] as const;

/**
 * Resolves with the exit code for the shell: the command's own, or 128 + n for a signal (also when
 * the user left by `Enter ~ .`, as SIGHUP). Throws a DroverError for whatever kept the command from
 * ending.
 */
export async function runExec(options: RunExecOptions): Promise<number> {
  const { stdin = process.stdin, stdout = process.stdout, stderr = process.stderr } = options;
  const tty = options.tty ?? (stdin.isTTY === true && stdout.isTTY === true);
  const session = await connectExec({
    url: options.url,
    token: options.token,
    start: { command: options.command, tty, ...terminalOf(options, stdout, tty) },
  });
  const restore: (() => void)[] = [];
  const left = Promise.withResolvers<number>();
  const leave = (signal: NodeJS.Signals): void => left.resolve(signalCode(signal));
  try {
    if (tty) restore.push(rawMode(stdin), followSize(stdout, session));
    restore.push(
      handleSignals(session, leave, tty),
      forwardInput(stdin, session, tty, () => leave('SIGHUP')),
    );
    return await Promise.race([forwardOutput(session, stdout, stderr), left.promise]);
  } finally {
    // In reverse: the terminal is the last to be given back.
    for (const undo of restore.toReversed()) undo();
    session.close();
  }
}

function terminalOf(
  options: RunExecOptions,
  stdout: { columns?: number; rows?: number },
  tty: boolean,
): { cols?: number; rows?: number; env: Record<string, string> } {
  if (!tty) return { env: options.env ?? {} };
  const term = process.env['TERM'];
  const env = { ...(term ? { TERM: term } : {}), ...options.env };
  const { columns: cols, rows } = stdout;
  return cols && rows ? { cols, rows, env } : { env };
}

/** Every key goes to the command, Ctrl-C too. Also undone when the process exits by another way. */
function rawMode(stdin: NonNullable<RunExecOptions['stdin']>): () => void {
  const undo = (): void => void stdin.setRawMode?.(false);
  stdin.setRawMode?.(true);
  process.once('exit', undo);
  return () => {
    process.off('exit', undo);
    undo();
  };
}

function followSize(
  stdout: NonNullable<RunExecOptions['stdout']>,
  session: ExecSession,
): () => void {
  const resized = (): void => {
    if (stdout.columns && stdout.rows) void session.resize(stdout.columns, stdout.rows);
  };
  stdout.on('resize', resized);
  return () => void stdout.off('resize', resized);
}

/**
 * Without a terminal Ctrl-C arrives here as a signal: the first goes to the command, the second
 * leaves.
 */
function handleSignals(
  session: ExecSession,
  leave: (signal: NodeJS.Signals) => void,
  tty: boolean,
): () => void {
  const sent = new Set<ExecSignal>();
  const interrupt = (signal: 'SIGINT' | 'SIGQUIT'): void => {
    if (sent.has(signal)) return leave(signal);
    sent.add(signal);
    void session.signal(signal);
  };
  const forwarded = tty ? [] : (['SIGINT', 'SIGQUIT'] as const);
  for (const signal of forwarded) process.on(signal, interrupt);
  for (const signal of LEAVING_SIGNALS) process.on(signal, leave);
  return () => {
    for (const signal of forwarded) process.off(signal, interrupt);
    for (const signal of LEAVING_SIGNALS) process.off(signal, leave);
  };
}

/** By events and not by iteration, which would destroy stdin at the end. */
function forwardInput(
  stdin: Readable,
  session: ExecSession,
  tty: boolean,
  leave: () => void,
): () => void {
  const escapes = escapeFilter();
  let isOver = false;
  const take = (typed: Buffer | string): void => {
    const { bytes, isLeaving } = tty
      ? escapes(Buffer.from(typed))
      : { bytes: Buffer.from(typed), isLeaving: false };
    if (isLeaving) leave();
    stdin.pause();
    void session.write(bytes).then(() => isOver || stdin.resume());
  };
  const end = (): void => void session.endInput();
  stdin.on('data', take);
  stdin.once('end', end);
  return () => {
    isOver = true;
    stdin.off('data', take);
    stdin.off('end', end);
    stdin.pause();
  };
}

async function forwardOutput(
  session: ExecSession,
  stdout: Writable,
  stderr: Writable,
): Promise<number> {
  for await (const { channel, bytes } of session.output) {
    await write(channel === 'stdout' ? stdout : stderr, bytes);
  }
  return exitCode(await session.exit);
}

/** Waits for a slow terminal or pipe; one that is closed ends the session. */
function write(output: Writable, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: Error): void =>
      reject(
        new DroverError('UNAVAILABLE', `output could not be written: ${cause.message}`, { cause }),
      );
    output.once('error', failed);
    output.write(bytes, (error) => {
      output.off('error', failed);
      if (error) failed(error);
      else resolve();
    });
  });
}

function exitCode({ code, signal }: ExecExit): number {
  return code ?? signalCode(signal ?? '');
}

function signalCode(signal: string): number {
  const numbers: Record<string, number> = constants.signals;
  return SIGNAL_BASE + (numbers[signal] ?? 0);
}
