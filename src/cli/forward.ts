/** drover forward: a port of this machine leads to a port of a running task. */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { systemClock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import { UsageError, wholeNumber } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { insideTask, type InsideTask } from './insideTask.ts';
import { findTask } from './taskOfId.ts';

interface Forward {
  localPort: number;
  remote: { kind: 'tcp'; port: number } | { kind: 'unix'; socket: string };
}

const LARGEST_PORT = 65_535;
/** A refusal comes back at once, from wherever the machine is. */
const PROBE_MS = 1_000;

export const forwardCommand = defineCommand({
  name: 'forward',
  summary: 'Reach a port of a running task from this machine',
  usage: ['forward ID [LOCAL:]REMOTE [--task N]'],
  options: {
    task: { kind: 'text', value: 'N', help: 'the task of an array or a gang (or its id as ID)' },
  },
  details:
    'LOCAL is a port on 127.0.0.1, REMOTE by default, 0 for any that is free. REMOTE is a port,\n' +
    "or the path of a Unix socket in the task's directory. It goes on until Ctrl-C.\n\n" +
    'examples:\n' +
    '  drover forward j01k2m3 6006\n' +
    '  drover forward j01k2m3 8080:80\n' +
    '  drover forward j01k2m3 8080:run/app.sock',
  async run({ options, ...parsed }, context) {
    const [written, place] = takePositionals(parsed, ['ID', '[LOCAL:]REMOTE']) as [string, string];
    const forward = parseForward(place);
    const task = await findTask(
      context.client(),
      written,
      options.task,
      'forward ID --task N PORT',
    );
    const inside = insideTask(context.connection(), task);
    try {
      await forwardUntilStopped(context, inside, task, forward);
      return EXIT.ok;
    } finally {
      inside.close('the user left');
    }
  },
});

async function forwardUntilStopped(
  context: CommandContext,
  inside: InsideTask,
  task: string,
  forward: Forward,
): Promise<void> {
  // Says at once that the task does not run or may not be looked into.
  const isServed = await probe(inside, forward);
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  const sockets = new Set<Socket>();
  const stopped = Promise.withResolvers<void>();
  let isOver = false;
  server.on('connection', (socket) => {
    sockets.add(socket);
    void serve(socket, inside, forward, (text) => {
      if (!isOver) void context.notice(text);
    }).finally(() => sockets.delete(socket));
  });
  const port = await listen(server, forward.localPort);
  const stopListening = context.io.onInterrupt(() => stopped.resolve());
  process.once('SIGTERM', () => stopped.resolve());
  await announce(context, { task, port, forward, isServed });
  await stopped.promise;
  isOver = true;
  stopListening();
  server.close();
  for (const socket of sockets) socket.destroy();
}

/** `6006`, `8080:80`, `8080:run/app.sock`. */
export function parseForward(text: string): Forward {
  const colon = text.indexOf(':');
  const [local, remote] = colon < 0 ? [text, text] : [text.slice(0, colon), text.slice(colon + 1)];
  if (colon >= 0 && !/^\d+$/.test(remote)) {
    if (remote === '') throw new UsageError(`${JSON.stringify(text)} names no port of the task`);
    return { localPort: portOf(local, 0), remote: { kind: 'unix', socket: remote } };
  }
  const port = portOf(remote, 1);
  return { localPort: portOf(local, 0), remote: { kind: 'tcp', port } };
}

function portOf(text: string, least: number): number {
  const port = wholeNumber(text, 'port', least);
  if (port <= LARGEST_PORT) return port;
  throw new UsageError(`port ${port} is above ${LARGEST_PORT}`);
}

/** False where nothing listens yet; what else keeps the stream from opening is thrown. */
async function probe(inside: InsideTask, { remote }: Forward): Promise<boolean> {
  const connection = await inside.connect(remote);
  const settled = new Promise<boolean>((resolve, reject) => {
    // A server that waits for us to speak has let us in.
    const timer = systemClock.setTimer(PROBE_MS, () => resolve(true));
    connection.once('close', () => timer.cancel());
    connection.once('error', (error) => {
      const isAbsent = error instanceof DroverError && error.code === 'UNAVAILABLE';
      if (isAbsent) resolve(false);
      else reject(error);
    });
    connection.once('end', () => resolve(true)).resume();
    connection.end();
  });
  try {
    return await settled;
  } finally {
    connection.destroy();
  }
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be used: ${message}`;
    throw new UsageError(`port ${port} of this machine ${why}`, 'name another one: LOCAL:REMOTE');
  }
  return (server.address() as AddressInfo).port;
}

async function announce(
  context: CommandContext,
  what: { task: string; port: number; forward: Forward; isServed: boolean },
): Promise<void> {
  const { task, port, forward, isServed } = what;
  const address = `127.0.0.1:${port}`;
  if (context.json) return context.printJson({ task, address, remote: forward.remote, isServed });
  const remote =
    forward.remote.kind === 'tcp' ? `port ${forward.remote.port}` : forward.remote.socket;
  await context.print(`${address} leads to ${remote} of ${task}; Ctrl-C ends it`);
  if (!isServed) await context.notice(`nothing listens on ${remote} yet`);
}

async function serve(
  socket: Socket,
  inside: InsideTask,
  { remote }: Forward,
  tell: (text: string) => void,
): Promise<void> {
  try {
    const failure = await inside.join(socket, remote);
    if (failure instanceof DroverError) tell(failure.message);
  } catch (error) {
    socket.resetAndDestroy();
    tell(error instanceof Error ? error.message : String(error));
  }
}
