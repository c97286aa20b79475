/**
 * The exec stream: a command in the context of a running attempt. It belongs to its stream: when
 * the client leaves, the tunnel ends or the command exits, everything left in its session is ended
 * too (what shall outlive it must start a session of its own, `setsid`).
 */
import { sleep, type Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import {
  CHANNELS,
  encodeExecControl,
  encodeExecMessage,
  EXEC_MESSAGE_BYTES,
  execInput,
  execStart,
  parseExecControl,
  readExecMessages,
  type ExecMessage,
  type ExecStart,
} from '../../protocol/tunnel/exec.ts';
import type { TunnelStream } from '../../protocol/tunnel/stream.ts';
import type { StreamHandler } from './dialer.ts';
import { feedInput, InputQueue } from './execInput.ts';
import type { ExecProcess } from './execProcess.ts';
import { requireRunning, type FindRunning } from './running.ts';
import { endSession, signalForeground } from './session.ts';
import { startCommand } from './startCommand.ts';

/**
 * After the exit, output is read on until it has been silent for this long: a child may hold it
 * open.
 */
const DRAIN_MS = 300;
const DRAIN_STEP_MS = 20;

export function createExecHandler(options: {
  execContext: FindRunning;
  clock: Clock;
  log: Log;
}): StreamHandler {
  const { clock } = options;
  return async (stream) => {
    const { attemptUid } = stream.header;
    const messages = readExecMessages(stream);
    const { command, env, tty, cols, rows } = await readStart(messages);
    const context = requireRunning(options.execContext, attemptUid);
    const terminal = tty ? { cols, rows } : undefined;
    const started = await startCommand({ command, env, terminal }, context, clock);
    const { pid } = started.process;
    options.log.info({ attemptUid, pid, tty }, 'exec started');
    try {
      await connect({ command: started.process, stream, input: new InputQueue(), clock }, messages);
    } finally {
      started.process.release();
      await endSession(pid, clock);
      await started.cleanUp();
      options.log.info({ attemptUid, pid }, 'exec ended');
    }
  };
}

async function readStart(messages: AsyncGenerator<ExecMessage, void>): Promise<ExecStart> {
  const first = await messages.next();
  if (first.done || first.value.channel !== CHANNELS.control) {
    throw new DroverError('INVALID_ARGUMENT', 'an exec stream begins with a start message');
  }
  return parseExecControl(execStart, Buffer.from(first.value.bytes).toString('utf8'));
}

interface Session {
  command: ExecProcess;
  stream: TunnelStream;
  input: InputQueue;
  clock: Clock;
}

/** Resolves when the command has ended and the client knows; throws when the client is gone. */
async function connect(
  session: Session,
  messages: AsyncGenerator<ExecMessage, void>,
): Promise<void> {
  const { command, stream, input } = session;
  const finished = sendOutput(session);
  // Of the input only failure matters: the client is gone, or spoke nonsense.
  const failed = Promise.all([
    receiveInput(messages, command, input),
    feedInput(input, command, stream),
  ]).then(() => finished);
  await Promise.race([finished, failed]);
}

async function receiveInput(
  messages: AsyncGenerator<ExecMessage, void>,
  command: ExecProcess,
  input: InputQueue,
): Promise<void> {
  for await (const { channel, bytes } of messages) {
    if (channel === CHANNELS.stdin) {
      input.push(bytes);
    } else if (channel === CHANNELS.control) {
      receiveControl(Buffer.from(bytes).toString('utf8'), command, input);
    } else {
      throw new DroverError('MALFORMED_BODY', `an exec message on channel ${channel}`);
    }
  }
}

function receiveControl(text: string, command: ExecProcess, input: InputQueue): void {
  const control = parseExecControl(execInput, text);
  if (control.type === 'end') input.end();
  else if (control.type === 'resize') command.resize(control.cols, control.rows);
  else signalForeground(command.pid, control.signal);
}

/**
 * Resolves when the exit status, after all output, has gone and the peer has ended its side too.
 */
async function sendOutput({ command, stream, input, clock }: Session): Promise<void> {
  const progress = { blocked: 0, silentMs: 0, ended: false };
  const pumps = Promise.all(
    command.outputs.map(async ({ channel, readable }) => {
      for await (const bytes of readUntilClosed(readable)) {
        progress.silentMs = 0;
        progress.blocked++;
        await writeOutput(stream, channel, bytes);
        progress.blocked--;
      }
    }),
  ).finally(() => (progress.ended = true));
  const exited = command.exited.then(async (status) => {
    while (!progress.ended && progress.silentMs < DRAIN_MS) {
      await sleep(clock, DRAIN_STEP_MS);
      // Blocked on a slow client is not silence.
      if (progress.blocked === 0) progress.silentMs += DRAIN_STEP_MS;
    }
    command.release();
    return status;
  });
  const [status] = await Promise.all([exited, pumps]);
  // The exit status is the last message.
  input.close();
  await stream.write(encodeExecControl({ type: 'exit', ...status }));
  stream.end();
  await stream.closed;
}

async function writeOutput(stream: TunnelStream, channel: number, bytes: Buffer): Promise<void> {
  const most = EXEC_MESSAGE_BYTES - 1;
  for (let at = 0; at < bytes.length; at += most) {
    await stream.write(encodeExecMessage(channel, bytes.subarray(at, at + most)));
  }
}

/** EIO is how a terminal says that its last process is gone; the others, that we let go of it. */
const ENDS = new Set(['EIO', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED']);

export async function* readUntilClosed(
  readable: NodeJS.ReadableStream,
): AsyncGenerator<Buffer, void> {
  try {
    for await (const bytes of readable) yield bytes as Buffer;
  } catch (error) {
    if (!ENDS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
