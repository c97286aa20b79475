/**
 * A command without a terminal. Its standard streams are FIFOs: what Node calls pipes are sockets,
 * and a script that writes to /dev/stderr or reads /dev/stdin fails on those.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Clock, Timer } from '../../lib/clock.ts';
import { CHANNELS } from '../../protocol/tunnel/exec.ts';
import {
  shellArguments,
  type ExecCommand,
  type ExecExitStatus,
  type ExecProcess,
} from './execProcess.ts';
import { makeFifos } from './fifos.ts';

const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
/** Linux: a handle on the file that opens neither end. */
const O_PATH = 0o10000000;
const KNOCK_MS = 100;

interface Fifo {
  ours: number;
  theirs: number;
}

interface InputFifo extends Fifo {
  /** To open it again when it is gone from the file system. */
  handle: number;
}

export async function startPiped(start: ExecCommand, clock: Clock): Promise<ExecProcess> {
  const [stdin, stdout, stderr] = await openFifos();
  const child = spawnOn([stdin, stdout, stderr], start);
  const input = new Socket({ fd: stdin.ours, readable: false, writable: true });
  const outputs = [
    { channel: CHANNELS.stdout, readable: outputSocket(stdout.ours) },
    { channel: CHANNELS.stderr, readable: outputSocket(stderr.ours) },
  ];
  // EPIPE: the command reads no more, and what it did not read is dropped.
  input.on('error', () => {});
  const exited = new Promise<ExecExitStatus>((resolve, reject) => {
    child.on('exit', (code, signal) => resolve({ code, signal }));
    child.on('error', reject);
  });
  let knocking: Timer | undefined;
  let released = false;
  const knock = (): void => {
    openAndCloseInput(stdin.handle);
    knocking = clock.setTimer(KNOCK_MS, knock);
  };
  const release = (): void => {
    if (released) return;
    released = true;
    knocking?.cancel();
    closeSync(stdin.handle);
    for (const socket of [input, ...outputs.map(({ readable }) => readable)]) socket.destroy();
  };
  const { pid } = child;
  if (pid === undefined) {
    release();
    await exited;
    throw new Error('a process without a pid ended without an error');
  }
  return {
    pid,
    outputs,
    exited,
    write: (bytes) => untilDone(input, (done) => input.write(bytes, done)),
    async endInput() {
      await untilDone(input, (done) => input.end(done));
      if (!released) knock();
    },
    resize() {},
    release,
  };
}

function spawnOn(fifos: Fifo[], start: ExecCommand): ChildProcess {
  const [file, commandArguments] = shellArguments(start);
  try {
    return spawn(file, commandArguments, {
      cwd: start.cwd,
      env: start.env,
      detached: true,
      stdio: fifos.map(({ theirs }) => theirs),
    });
  } catch (error) {
    for (const { ours } of fifos) closeSync(ours);
    throw error;
  } finally {
    for (const { theirs } of fifos) closeSync(theirs);
  }
}

/** Gone from the file system once open. */
async function openFifos(): Promise<[InputFifo, Fifo, Fifo]> {
  const { paths, remove } = await makeFifos(['stdin', 'stdout', 'stderr']);
  try {
    return [inputFifo(paths[0]!), outputFifo(paths[1]!), outputFifo(paths[2]!)];
  } finally {
    await remove();
  }
}

/**
 * Opening an end waits for the other unless it is non-blocking; theirs must block once it is in
 * use.
 */
function inputFifo(path: string): InputFifo {
  const handle = openSync(path, O_PATH);
  const opener = openSync(path, O_RDONLY | O_NONBLOCK);
  const ours = openSync(path, O_WRONLY | O_NONBLOCK);
  const theirs = openSync(path, O_RDONLY);
  closeSync(opener);
  return { ours, theirs, handle };
}

/**
 * After the end of input, opening /dev/stdin would wait for a writer for ever, as it would not on a
 * pipe. A writer that comes and goes lets it in, to what is left and then the end.
 */
function openAndCloseInput(handle: number): void {
  try {
    closeSync(openSync(`/proc/self/fd/${handle}`, O_WRONLY | O_NONBLOCK));
  } catch (error) {
    // ENXIO: nobody reads, nobody waits.
    if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error;
  }
}

function outputFifo(path: string): Fifo {
  const ours = openSync(path, O_RDONLY | O_NONBLOCK);
  return { ours, theirs: openSync(path, O_WRONLY) };
}

function outputSocket(fd: number): Socket {
  return new Socket({ fd, readable: true, writable: false });
}

/** Also when the socket fails or is closed meanwhile, in which case some callbacks never come. */
function untilDone(socket: Socket, act: (done: () => void) => void): Promise<void> {
  if (socket.destroyed || socket.writableEnded) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('close', done);
      resolve();
    };
    socket.once('close', done);
    act(done);
  });
}
