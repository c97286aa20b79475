/**
 * A command on a pseudo-terminal. Uses the native half of node-pty only: its own stream drops the
 * tail of the output when the reader is slower than 200 ms, and spins on writes to a terminal that
 * nobody reads.
 */
import { writeSync } from 'node:fs';
import { constants } from 'node:os';
import { ReadStream } from 'node:tty';
import { sleep, type Clock } from '../../lib/clock.ts';
import { CHANNELS } from '../../protocol/tunnel/exec.ts';
import {
  shellArguments,
  type ExecCommand,
  type ExecExitStatus,
  type ExecProcess,
} from './execProcess.ts';
import { loadNativeTerminal } from './nativeTerminal.ts';

/** -1: as the agent itself. */
const SAME_USER = -1;
/** A terminal whose input is full does not say when it has room again. */
const INPUT_FULL_RETRY_MS = 5;

export function startInTerminal(
  start: ExecCommand & { cols: number; rows: number },
  clock: Clock,
): ExecProcess {
  const native = loadNativeTerminal();
  const exited = Promise.withResolvers<ExecExitStatus>();
  const { fd, pid } = native.fork(
    ...shellArguments(start),
    Object.entries(start.env).map(([name, value]) => `${name}=${value}`),
    start.cwd,
    start.cols,
    start.rows,
    SAME_USER,
    SAME_USER,
    true,
    '',
    (code, signal) => exited.resolve(exitStatus(code, signal)),
  );
  const readable = new ReadStream(fd);
  return {
    pid,
    outputs: [{ channel: CHANNELS.stdout, readable }],
    exited: exited.promise,
    write: (bytes) => writeInput(fd, bytes, readable, clock),
    // A terminal has no end of input but the character for it, which is the user's to type.
    endInput: () => Promise.resolve(),
    resize(cols, rows) {
      if (!readable.destroyed) native.resize(fd, cols, rows);
    },
    release: () => void readable.destroy(),
  };
}

/**
 * Writes synchronously, which does not block: the descriptor is non-blocking, and unlike an
 * asynchronous write it cannot hit another file that was given the same number after a close.
 */
async function writeInput(
  fd: number,
  bytes: Uint8Array,
  readable: ReadStream,
  clock: Clock,
): Promise<void> {
  for (let at = 0; at < bytes.length && !readable.destroyed;) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // EIO: the last process on the terminal is gone and nobody will read this.
      if (code === 'EIO') return;
      if (code !== 'EAGAIN') throw error;
      await sleep(clock, INPUT_FULL_RETRY_MS);
    }
  }
}

function exitStatus(code: number, signal: number): ExecExitStatus {
  if (signal === 0) return { code, signal: null };
  const name = Object.entries(constants.signals).find(([, number]) => number === signal)?.[0];
  return { code: null, signal: name ?? `SIG${signal}` };
}
