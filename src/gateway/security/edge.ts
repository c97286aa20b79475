/** The gateway's outermost layer: who may connect, over what, and what every answer says. */
import type { Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import { isLoopback } from '../../lib/loopback.ts';
import type { Log } from '../../lib/log.ts';
import type { TlsFiles } from '../../lib/tls/files.ts';
import { gateConnections } from '../../lib/tls/gate.ts';
import { tlsServerOptions } from '../../lib/tls/options.ts';
import type { App } from '../app.ts';
import type { Upgrade } from '../gateway.ts';
import { type Admission, createAdmission } from './admission.ts';
import { allowOrigins } from './cors.ts';
import { createStamps, RAW_HEADERS, type Stamps } from './headers.ts';

export interface EdgeOptions {
  host: string;
  /** How others reach the gateway, where not by its own address. */
  publicUrl?: string;
  /** With it the gateway speaks HTTPS. */
  tls?: TlsFiles;
  /** Addresses and networks; none: everybody. */
  allow?: readonly string[];
  trustedProxies?: readonly string[];
  corsOrigins?: readonly string[];
  /** What is readable on the network, a sentence each: told wherever somebody looks. */
  exposures?: readonly string[];
}

export interface Edge {
  exposures: readonly string[];
  stamps: Stamps;
  admission: Admission;
  tls: TlsFiles | undefined;
  refusedConnections(): number;
  /** Before routes are added and before it listens. */
  attach(app: App): void;
  /** The same for what does not pass the router. */
  guardUpgrade(upgrade: Upgrade | undefined): Upgrade | undefined;
  /** Lets go of connections that are no further than their handshake. */
  close(): void;
}

export function createEdge(options: EdgeOptions, log: Log): Edge {
  const { tls, exposures = [] } = options;
  const admission = createAdmission(options);
  const stamps = createStamps({ hsts: wantsHsts(options), insecure: exposures.length > 0 });
  const pending = new Map<string, Socket>();
  let refused = 0;
  for (const exposure of exposures) log.warn({ insecure: true }, exposure);
  return {
    exposures,
    admission,
    tls,
    stamps,
    refusedConnections: () => refused,
    attach(app) {
      if (tls) serveTls(app.server as unknown as TlsServer, tls, pending, log);
      if (!admission.isOpen) {
        const admits = (peer: string): boolean => admission.admits(peer);
        gateConnections(app.server, admits, (address) => {
          refused++;
          log.debug({ address }, 'a connection was refused: it is not in server.allow');
        });
      }
      if (!admission.isOpen && options.trustedProxies?.length) {
        app.addHook('onRequest', (request, reply, done) => {
          stamps.open(reply);
          admission.check(request.raw);
          done();
        });
      }
      allowOrigins(app, options.corsOrigins ?? [], stamps.open);
    },
    guardUpgrade: (upgrade) => upgrade && guardedUpgrade(upgrade, admission),
    close() {
      for (const socket of pending.values()) socket.destroy();
    },
  };
}

/** Not for localhost: there it would turn every other page of this machine to HTTPS as well. */
function wantsHsts({ tls, host, publicUrl = '' }: EdgeOptions): boolean {
  return publicUrl.startsWith('https:') || (tls !== undefined && !isLoopback(host));
}

/** New certificates are for new connections; what is under way goes on under the old ones. */
function serveTls(server: TlsServer, tls: TlsFiles, pending: Map<string, Socket>, log: Log): void {
  tls.onChange(() => server.setSecureContext(tlsServerOptions(tls)));
  // Node would pass it on as a bad request and have it answered in plain text.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (error, socket) => {
    log.debug({ error: error.message }, 'a TLS handshake failed');
    socket.destroy();
  });
  // A server that closes waits for its connections, and Node lets go of those with HTTP on them.
  const nameOf = (socket: Socket): string => `${socket.remoteAddress} ${socket.remotePort}`;
  server.on('connection', (socket) => {
    const name = nameOf(socket);
    pending.set(name, socket);
    socket.once('close', () => pending.delete(name));
  });
  server.on('secureConnection', (socket) => pending.delete(nameOf(socket)));
}

function guardedUpgrade(upgrade: Upgrade, admission: Admission): Upgrade {
  return (request, socket, head, authorize) => {
    try {
      admission.check(request);
    } catch {
      socket.end(`HTTP/1.1 403 Forbidden\r\n${RAW_HEADERS}connection: close\r\n\r\n`);
      return;
    }
    upgrade(request, socket, head, authorize);
  };
}
