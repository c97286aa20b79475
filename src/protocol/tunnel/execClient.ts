/** The client half of exec: connects to a gateway and speaks the exec protocol. */
import { WebSocket } from 'ws';
import { systemClock, type Clock } from '../../lib/clock.ts';
import { DroverError, ERRORS, type ErrorCode } from '../../lib/errors.ts';
import {
  CHANNELS,
  EXEC_MESSAGE_BYTES,
  EXEC_PROTOCOL,
  EXEC_INPUT_BYTES,
  execReply,
  parseExecControl,
  type ExecExit,
  type ExecInput,
  type ExecReply,
  type ExecSignal,
  type ExecStart,
} from './exec.ts';
import { CLOSE_NORMAL } from './messageSocket.ts';
import { connectWebSocket, sendMessage, watchPeer, webSocketReader } from './webSocket.ts';

interface ExecOutput {
  channel: 'stdout' | 'stderr';
  bytes: Uint8Array;
}

export interface ExecSession {
  /**
   * Must be read for anything to move. Ends after the last byte; throws what kept the command from
   * ending.
   */
  output: AsyncIterable<ExecOutput>;
  /** Settles when `output` has ended; rejects with what `output` threw. */
  exit: Promise<ExecExit>;
  /** Resolves when more may be written. Input after the end of the command is dropped. */
  write(bytes: Uint8Array): Promise<void>;
  endInput(): Promise<void>;
  resize(cols: number, rows: number): Promise<void>;
  signal(signal: ExecSignal): Promise<void>;
  /** Leaves; a command that still runs is ended. */
  close(): void;
}

export interface ConnectExecOptions {
  /** See `execUrl`. */
  url: string;
  token: string;
  start: Omit<ExecStart, 'type'>;
  clock?: Clock;
}

/** A gateway that does not answer must not keep a client that wants to go. */
const CLOSE_GRACE_MS = 1_000;

/**
 * `server` is what the CLI calls the server's URL; `task` a task or a job, of which task 0 is
 * meant.
 */
export function execUrl(server: string, task: string): string {
  const base = server.endsWith('/') ? server : `${server}/`;
  return new URL(`v1/tasks/${encodeURIComponent(task)}/exec`, base).href;
}

export function connectExec(options: ConnectExecOptions): Promise<ExecSession> {
  const connection = {
    url: options.url,
    protocol: EXEC_PROTOCOL,
    headers: { authorization: `Bearer ${options.token}` },
    maxMessageBytes: EXEC_MESSAGE_BYTES,
  };
  return connectWebSocket(connection, (socket) => {
    const clock = options.clock ?? systemClock;
    watchPeer(socket, clock);
    const session = execSession(socket, clock);
    socket.send(JSON.stringify({ type: 'start', ...options.start } satisfies ExecStart));
    return session;
  });
}

function execSession(socket: WebSocket, clock: Clock): ExecSession {
  const exit = Promise.withResolvers<ExecExit>();
  // Whoever reads `output` has the error already.
  exit.promise.catch(() => {});
  const room = new InputRoom();
  socket.on('close', () => room.close());
  const control = (input: ExecInput): Promise<void> => send(socket, JSON.stringify(input));
  let sent = Promise.resolve();
  // A pipe may end while its last bytes wait for room: the end must not overtake them.
  const inOrder = (act: () => Promise<void>): Promise<void> => (sent = sent.then(act));
  return {
    output: readOutput(webSocketReader(socket), exit, room),
    exit: exit.promise,
    write: (bytes) => inOrder(() => sendInput(socket, room, bytes)),
    endInput: () => inOrder(() => control({ type: 'end' })),
    resize: (cols, rows) => control({ type: 'resize', cols, rows }),
    signal: (signal) => control({ type: 'signal', signal }),
    close() {
      if (socket.readyState === WebSocket.CLOSED) return;
      socket.close(CLOSE_NORMAL, 'the client left');
      const timer = clock.setTimer(CLOSE_GRACE_MS, () => socket.terminate());
      socket.once('close', () => timer.cancel());
    },
  };
}

async function sendInput(socket: WebSocket, room: InputRoom, bytes: Uint8Array): Promise<void> {
  const most = EXEC_MESSAGE_BYTES - 1;
  for (let at = 0; at < bytes.length; at += most) {
    const piece = bytes.subarray(at, at + most);
    await room.take(piece.length);
    await send(socket, Buffer.concat([Uint8Array.of(CHANNELS.stdin), piece]));
  }
}

/** A connection that is gone is reported once, by `output`. */
async function send(socket: WebSocket, message: string | Uint8Array): Promise<void> {
  if (socket.readyState !== WebSocket.OPEN) return;
  await sendMessage(socket, message).catch(() => {});
}

/** How much input may be sent before more is taken. For one writer at a time. */
class InputRoom {
  #bytes = EXEC_INPUT_BYTES;
  #wake: (() => void) | undefined;

  async take(bytes: number): Promise<void> {
    while (this.#bytes < bytes) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#bytes -= bytes;
  }

  giveBack(bytes: number): void {
    this.#bytes += bytes;
    this.#wake?.();
  }

  /** Nobody need wait any more. */
  close(): void {
    this.giveBack(Number.POSITIVE_INFINITY);
  }
}

async function* readOutput(
  messages: ReturnType<typeof webSocketReader>,
  exit: PromiseWithResolvers<ExecExit>,
  room: InputRoom,
): AsyncGenerator<ExecOutput, void, undefined> {
  try {
    for await (const { text, bytes } of messages) {
      if (bytes !== undefined) {
        const channel = bytes[0] === CHANNELS.stderr ? 'stderr' : 'stdout';
        yield { channel, bytes: bytes.subarray(1) };
        continue;
      }
      const reply = parseExecControl(execReply, text);
      if (reply.type === 'error') throw errorOf(reply);
      if (reply.type === 'exit') {
        room.close();
        exit.resolve(reply);
        return;
      }
      room.giveBack(reply.bytes);
    }
    throw new DroverError('UNAVAILABLE', 'the connection to the gateway was lost', {
      hint: 'the command was ended with it; see whether the server is up, then try again',
    });
  } catch (error) {
    room.close();
    exit.reject(error);
    throw error;
  }
}

function errorOf(reply: Extract<ExecReply, { type: 'error' }>): DroverError {
  const code = Object.hasOwn(ERRORS, reply.code) ? (reply.code as ErrorCode) : 'INTERNAL';
  return new DroverError(code, reply.message, reply.hint ? { hint: reply.hint } : {});
}
