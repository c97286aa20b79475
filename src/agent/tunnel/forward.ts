/** The streams `tcp` and `unix`: a connection to what a running attempt serves on its machine. */
import { closeSync, constants, openSync } from 'node:fs';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { basename, dirname, resolve } from 'node:path';
import { DroverError } from '../../lib/errors.ts';
import { joinDuplexes, streamDuplex } from '../../protocol/tunnel/duplex.ts';
import { parseInside } from '../../protocol/tunnel/inside.ts';
import type { TunnelStream } from '../../protocol/tunnel/stream.ts';
import type { StreamHandler } from './dialer.ts';
import { requireRunning, type FindRunning } from './running.ts';

/** On the same machine: whoever does not answer by then hangs. */
const CONNECT_TIMEOUT_MS = 10_000;

export function createForwardHandler(find: FindRunning): StreamHandler {
  return async (stream) => {
    const { cwd } = requireRunning(find, stream.header.attemptUid);
    const request = parseInside(stream.header);
    if (request.kind === 'tcp') {
      await pump(stream, await connectTo({ host: '127.0.0.1', port: request.port }));
    } else if (request.kind === 'unix') {
      await pump(stream, await connectToSocket(resolve(cwd, request.socket)));
    }
  };
}

async function pump(stream: TunnelStream, socket: Socket): Promise<void> {
  await joinDuplexes(streamDuplex(stream), socket);
  await stream.closed;
}

/** By its directory's handle, because the name of a socket may have 107 bytes only. */
async function connectToSocket(path: string): Promise<Socket> {
  let directory: number;
  try {
    directory = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (cause) {
    throw new DroverError('UNAVAILABLE', `there is no directory ${dirname(path)}`, { cause });
  }
  try {
    return await connectTo({ path: `/proc/self/fd/${directory}/${basename(path)}` }, path);
  } finally {
    closeSync(directory);
  }
}

/** `name` is how the place is called in an error. */
export function connectTo(
  place: { host: string; port: number } | { path: string },
  name = 'port' in place ? `port ${place.port}` : place.path,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const options: NetConnectOpts = { ...place, allowHalfOpen: true, noDelay: true };
    const socket = connect({ ...options, timeout: CONNECT_TIMEOUT_MS });
    const failed = (cause: NodeJS.ErrnoException): void => {
      socket.destroy();
      reject(new DroverError('UNAVAILABLE', reasonOf(cause, name), { cause }));
    };
    socket.once('error', failed);
    socket.once('timeout', () => failed(new Error('no answer')));
    socket.once('connect', () => {
      socket.off('error', failed);
      socket.removeAllListeners('timeout').setTimeout(0);
      resolve(socket);
    });
  });
}

function reasonOf(cause: NodeJS.ErrnoException, name: string): string {
  if (cause.code === 'ECONNREFUSED' || cause.code === 'ENOENT') {
    return `nothing listens on ${name} of the task's machine`;
  }
  return `${name} of the task's machine cannot be reached: ${cause.message}`;
}
