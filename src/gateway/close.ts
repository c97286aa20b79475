/** The end of a gateway: what is under way is finished, what only waits is let go. */
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { App } from './app.ts';
import type { Authorize } from './auth/authorize.ts';
import { closingError } from './auth/guard.ts';
import type { Flights } from './flights.ts';
import type { Upgrade } from './gateway.ts';
import type { GatewayLimits } from './limits.ts';

/** A connection kept alive goes idle when its last answer is out; it is looked for so often. */
const IDLE_LOOK_MS = 20;

/** Returns the live upgraded sockets: the server forgets them, yet waits for them to close. */
export function trackUpgrades(
  server: Server,
  flights: Flights,
  upgrade: Upgrade | undefined,
  authorize: Authorize,
): Set<Duplex> {
  const sockets = new Set<Duplex>();
  // Without a listener Node reads an upgrade as a plain request, which is then a 404.
  if (!upgrade) return sockets;
  server.on('upgrade', (request, socket, head) => {
    if (flights.closing) {
      socket.end(
        'HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
      );
      return;
    }
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A peer that vanishes mid-handshake must not end the process; the handler adds its own.
    socket.on('error', () => socket.destroy());
    upgrade(request, socket, head, authorize);
  });
  return sockets;
}

interface CloseOptions {
  app: App;
  flights: Flights;
  upgraded: Set<Duplex>;
  clock: Clock;
  log: Log;
  limits: GatewayLimits;
}

export async function closeGently(options: CloseOptions): Promise<void> {
  const { app, flights, upgraded, clock, log, limits } = options;
  if (flights.closing) return app.close();
  flights.refuse(closingError);
  // Whoever passed `upgrade` has ended its streams politely by now.
  for (const socket of upgraded) socket.destroy();
  let looking: Timer;
  const look = (): void => {
    app.server.closeIdleConnections();
    looking = clock.setTimer(IDLE_LOOK_MS, look);
  };
  look();
  const cutOff = clock.setTimer(limits.closeMs, () => {
    log.warn({ inFlight: flights.count }, 'requests were cut off: they outlasted the close');
    app.server.closeAllConnections();
    for (const socket of upgraded) socket.destroy();
  });
  try {
    await app.close();
  } finally {
    looking!.cancel();
    cutOff.cancel();
    flights.stop();
  }
}
