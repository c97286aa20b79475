/**
 * `/v1/tasks/{task}/exec`: a client's WebSocket on one side, an exec stream to the task's machine
 * on the other. What cannot be refused before the upgrade is said in an error message, which
 * browsers can read.
 */
import { WebSocket, WebSocketServer } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Principal } from '../../model/token.ts';
import {
  CHANNELS,
  encodeExecControl,
  encodeExecMessage,
  EXEC_MESSAGE_BYTES,
  EXEC_PATH,
  EXEC_PROTOCOL,
  execReply,
  execStart,
  parseExecControl,
  readExecMessages,
  type ExecReply,
  type ExecStart,
} from '../../protocol/tunnel/exec.ts';
import { CLOSE_INTERNAL, CLOSE_NORMAL, cutReason } from '../../protocol/tunnel/messageSocket.ts';
import type { TunnelStream } from '../../protocol/tunnel/stream.ts';
import {
  sendMessage,
  watchPeer,
  webSocketReader,
  type WebSocketMessage,
} from '../../protocol/tunnel/webSocket.ts';
import type { TunnelHub } from './hub.ts';
import { taskOf } from './tasks.ts';
import { bearerToken, matchPath, requireProtocol, type UpgradeRoute } from './upgrades.ts';

export interface ExecRouteOptions {
  hub: Pick<TunnelHub, 'openStream'>;
  authenticate(token: string): Promise<Principal | undefined>;
  clock: Clock;
  log: Log;
}

const encoder = new TextEncoder();

type ClientMessages = AsyncGenerator<WebSocketMessage, void, undefined>;

/** A client that connected and then says nothing. */
export const START_TIMEOUT_MS = 10_000;

export function createExecRoute(options: ExecRouteOptions): UpgradeRoute {
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: EXEC_MESSAGE_BYTES,
    handleProtocols: () => EXEC_PROTOCOL,
  });
  return {
    path: '/v1/tasks/{task}/exec',
    permission: 'jobs:manage',
    summary: 'A command inside a running task, with a terminal where wanted',
    match: matchPath(EXEC_PATH),
    async upgrade({ request, socket, head }, [target = '']) {
      const who = await options.authenticate(bearerToken(request));
      if (who === undefined) {
        throw new DroverError('UNAUTHENTICATED', 'the token is unknown, expired or revoked', {
          hint: 'see `drover login`',
        });
      }
      if (!who.scopes.includes('jobs:manage')) {
        throw new DroverError('PERMISSION_DENIED', 'the token lacks the scope jobs:manage');
      }
      requireProtocol(request, EXEC_PROTOCOL, true);
      server.handleUpgrade(request, socket, head, (client) => {
        watchPeer(client, options.clock);
        const messages = webSocketReader(client);
        void serveExec({ client, messages, who, task: taskOf(target) }, options);
      });
    },
  };
}

interface ExecRequest {
  client: WebSocket;
  messages: ClientMessages;
  who: Principal;
  task: string;
}

async function serveExec(request: ExecRequest, options: ExecRouteOptions): Promise<void> {
  const { client, messages, who, task } = request;
  let stream: TunnelStream | undefined;
  try {
    const start = await readStart(messages, options.clock);
    stream = await options.hub.openStream(who, task, { kind: 'exec' });
    await stream.write(encodeExecControl(start));
    // The client's leaving and the command's end are both good ends; only one of them comes first.
    await Promise.race([forwardOutput(stream, client), forwardInput(messages, stream)]);
    client.close(CLOSE_NORMAL);
  } catch (error) {
    await reportError(client, error, options.log);
  } finally {
    // Nothing happens to a stream that has ended both ways; otherwise this ends the command.
    stream?.reset('UNAVAILABLE', 'the exec session ended');
  }
}

async function readStart(messages: ClientMessages, clock: Clock): Promise<ExecStart> {
  const late = Promise.withResolvers<never>();
  const timer = clock.setTimer(START_TIMEOUT_MS, () =>
    late.reject(new DroverError('TIMEOUT', 'no start message came')),
  );
  try {
    const first = await Promise.race([messages.next(), late.promise]);
    if (first.done) throw new DroverError('UNAVAILABLE', 'the client left');
    if (first.value.text === undefined) {
      throw new DroverError('INVALID_ARGUMENT', 'the first exec message must be a JSON text');
    }
    return parseExecControl(execStart, first.value.text);
  } finally {
    timer.cancel();
  }
}

/** Resolves when the exit status was sent and the machine has ended the stream. */
async function forwardOutput(stream: TunnelStream, client: WebSocket): Promise<void> {
  let hasExited = false;
  for await (const { channel, bytes } of readExecMessages(stream)) {
    if (channel !== CHANNELS.control) {
      await sendMessage(client, Buffer.concat([Uint8Array.of(channel), bytes]));
      continue;
    }
    const text = Buffer.from(bytes).toString('utf8');
    await sendMessage(client, text);
    hasExited ||= parseExecControl(execReply, text).type === 'exit';
    if (hasExited) stream.end();
  }
  if (hasExited) return;
  throw new DroverError('UNAVAILABLE', 'the machine ended the session without an exit code');
}

/** Resolves when the client has left. */
async function forwardInput(messages: ClientMessages, stream: TunnelStream): Promise<void> {
  for await (const { text, bytes } of messages) {
    if (bytes === undefined) {
      await stream.write(encodeExecMessage(CHANNELS.control, encoder.encode(text)));
    } else if (bytes[0] === CHANNELS.stdin) {
      await stream.write(encodeExecMessage(CHANNELS.stdin, bytes.subarray(1)));
    } else {
      throw new DroverError('INVALID_ARGUMENT', `clients may not send on channel ${bytes[0]}`);
    }
  }
}

async function reportError(client: WebSocket, error: unknown, log: Log): Promise<void> {
  if (client.readyState !== WebSocket.OPEN) return;
  const isExpected = error instanceof DroverError;
  if (!isExpected) log.error({ error: String(error) }, 'an exec session failed');
  const message = isExpected ? error.message : 'the exec session failed inside Drover';
  const code = isExpected ? error.code : 'INTERNAL';
  const hint = isExpected ? error.hint : undefined;
  const result: ExecReply = { type: 'error', code, message, ...(hint ? { hint } : {}) };
  // A client that left meanwhile has nobody to tell.
  await sendMessage(client, JSON.stringify(result)).catch(() => {});
  client.close(CLOSE_INTERNAL, cutReason(message));
}
