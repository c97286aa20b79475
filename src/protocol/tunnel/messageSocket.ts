/** The message socket a tunnel runs on, and its implementation by a WebSocket. */
import type { WebSocket } from 'ws';

export interface SocketEvents {
  message(bytes: Uint8Array): void;
  /** A text message or whatever else the tunnel does not speak. */
  foreign(what: string): void;
  pong(): void;
  /** Once, however it ended. */
  close(reason: string): void;
}

export interface MessageSocket {
  /** `sent` is called later, never from within, when the bytes left the process. */
  send(bytes: Uint8Array, sent: () => void): void;
  ping(): void;
  /** Says why and closes; `code` is a WebSocket close code. */
  close(code: number, reason: string): void;
  /** At once, for a peer that does not answer. */
  terminate(): void;
  listen(events: SocketEvents): void;
}

/** RFC 6455: a close reason has room for 123 bytes. */
const CLOSE_REASON_BYTES = 123;
export const CLOSE_NORMAL = 1000;
export const CLOSE_PROTOCOL_ERROR = 1002;
export const CLOSE_INTERNAL = 1011;

export function webSocketMessages(socket: WebSocket): MessageSocket {
  return {
    // A send that fails is followed by `close`, which is where failure is handled.
    send: (bytes, sent) => socket.send(bytes, { binary: true }, () => sent()),
    ping: () => socket.ping(),
    close: (code, reason) => socket.close(code, cutReason(reason)),
    terminate: () => socket.terminate(),
    listen(events) {
      let failure = '';
      socket.on('message', (data, isBinary) => {
        if (isBinary && Buffer.isBuffer(data)) events.message(data);
        else events.foreign('a text message');
      });
      socket.on('pong', () => events.pong());
      socket.on('error', (error) => (failure = error.message));
      socket.on('close', (code, reason) => {
        events.close(failure || reason.toString() || `the connection was lost (${code})`);
      });
    },
  };
}

export function cutReason(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= CLOSE_REASON_BYTES) return reason;
  return new TextDecoder().decode(bytes.subarray(0, CLOSE_REASON_BYTES - 3), { stream: true });
}
