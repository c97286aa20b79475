/**
 * A command without a terminal. Its standard streams are FIFOs: what Node calls pipes are sockets, and a
 * script that writes to /dev/stderr or reads /dev/stdin fails on those.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CHANNELS } from '../../protocol/tunnel/exec.ts';
import {
  shellArguments,
  type ExecCommand,
  type ExecExitStatus,
  type ExecProcess,
} from './execProcess.ts';

const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

interface Fifo {
  ours: number;
  theirs: number;
}

export async function startPiped(start: ExecCommand): Promise<ExecProcess> {
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
  const release = (): void => {
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
    endInput: () => untilDone(input, (done) => input.end(done)),
    resize() {},
    release,
  };
}

function spawnOn(fifos: Fifo[], start: ExecCommand): ChildProcess {
  const [file, commandArguments] = shellArguments(start.command);
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
async function openFifos(): Promise<[Fifo, Fifo, Fifo]> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-exec-'));
  try {
    const paths = ['stdin', 'stdout', 'stderr'].map((name) => join(folder, name));
    await promisify(execFile)('mkfifo', ['-m', '600', ...paths]);
    return [inputFifo(paths[0]!), outputFifo(paths[1]!), outputFifo(paths[2]!)];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Opening an end waits for the other unless it is non-blocking; theirs must block once it is in use. */
function inputFifo(path: string): Fifo {
  const opener = openSync(path, O_RDONLY | O_NONBLOCK);
  const ours = openSync(path, O_WRONLY | O_NONBLOCK);
  const theirs = openSync(path, O_RDONLY);
  closeSync(opener);
  return { ours, theirs };
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
