/** Turns connections away by their address, before a byte of them is read. */
import type { Server, Socket } from 'node:net';

/**
 * Call it when the server has the listeners of its protocol, and before it listens: for those who
 * are turned away there is no handshake and no parser.
 */
export function gateConnections(
  server: Server,
  admits: (address: string) => boolean,
  onRefused: (address: string) => void,
): void {
  type Listener = (this: Server, socket: Socket) => void;
  const listeners = server.listeners('connection') as Listener[];
  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    if (admits(address)) {
      for (const listener of listeners) listener.call(server, socket);
      return;
    }
    onRefused(address);
    socket.destroy();
  });
}
