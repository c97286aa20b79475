/**
 * The way out for agents on machines that reach nobody but the login node: passes their calls on to
 * the gateway, as they come and go, and nothing else. It reads no tokens; the gateway checks them.
 */
import { Agent, createServer, request, type Server } from 'node:http';
import type {
  ClientRequest,
  IncomingMessage,
  OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../lib/log.ts';
import { shownCertificate } from '../protocol/clientTls.ts';
import { passedHeaders } from './headers.ts';
import { isPassed, isPassedUpgrade } from './paths.ts';
import { problemText, UNREACHABLE, UNKNOWN } from './problem.ts';
import { passUpgrade } from './upgrade.ts';

const RELAY_LIMITS = {
  /** Some eight of each agent: with them 500 agents. Beyond, connections are closed at once. */
  connections: 4096,
  /** A request whose headers are not here by then holds a socket for nothing. */
  headersMs: 60_000,
  /** Nothing either way for this long: longer than any call is held, or a transfer may stand. */
  silenceMs: 330_000,
};

/** About as long as a gateway keeps a connection that nobody uses. */
const KEEP_ALIVE_MS = 65_000;

export interface RelayOptions {
  /** The gateway, as the connector reaches it. */
  target: URL;
  host: string;
  port: number;
  log: Log;
  limits?: Partial<typeof RELAY_LIMITS>;
}

export interface Relay {
  /** Where it listens. */
  url: string;
  close(): Promise<void>;
}

/** A request to the gateway; `agent: false` gives it a connection of its own. */
export type Dial = (
  incoming: IncomingMessage,
  options: { headers: OutgoingHttpHeaders; agent?: false },
) => ClientRequest;

export async function startRelay(options: RelayOptions): Promise<Relay> {
  const limits = { ...RELAY_LIMITS, ...options.limits };
  const { target, host, port, log } = options;
  const dialer = createDialer(target, limits.silenceMs);
  const sockets = new Set<Duplex>();
  const server = createServer({
    requestTimeout: 0,
    headersTimeout: limits.headersMs,
    connectionsCheckingInterval: limits.headersMs / 2,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  server.maxConnections = limits.connections;
  server.timeout = limits.silenceMs;
  server.on('drop', () => log.warn({ limit: limits.connections }, 'too many connections'));
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const reached = reachNotes(target, log);
  server.on('request', (incoming, outgoing) => {
    if (isPassed(incoming)) pass(incoming, outgoing, dialer.dial, reached);
    else refuse(incoming, outgoing, UNKNOWN);
  });
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const dial = isPassedUpgrade(incoming) ? dialer.dial : undefined;
    passUpgrade({ incoming, socket, head, dial, silenceMs: limits.silenceMs, reached });
  });
  await listen(server, host, port);
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      dialer.close();
      await closed;
    },
  };
}

/** Told when the gateway answers and when it does not; says so when that changes. */
export interface ReachNotes {
  answered(): void;
  failed(error: Error): void;
}

function reachNotes(target: URL, log: Log): ReachNotes {
  let isReached = true;
  return {
    answered() {
      if (!isReached) log.info({ gateway: target.origin }, 'the gateway answers again');
      isReached = true;
    },
    failed(error) {
      if (isReached) log.warn({ gateway: target.origin, err: error }, 'the gateway is not reached');
      isReached = false;
    },
  };
}

function createDialer(target: URL, silenceMs: number): { dial: Dial; close(): void } {
  const isTls = target.protocol === 'https:';
  const agent = isTls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  const send = isTls ? tlsRequest : request;
  return {
    dial(incoming, options) {
      const upstream = send({
        agent,
        protocol: target.protocol,
        hostname: target.hostname.replace(/^\[|\]$/g, ''),
        port: target.port || (isTls ? 443 : 80),
        method: incoming.method,
        path: incoming.url,
        setHost: false,
        // Read each time, which a renewal changes.
        ...(isTls ? shownCertificate() : {}),
        ...options,
        headers: {
          ...options.headers,
          host: target.host,
          // Looked at by a gateway that trusts this one (server.trustedProxies).
          'x-forwarded-for': incoming.socket.remoteAddress,
        },
      });
      upstream.setTimeout(silenceMs, () => upstream.destroy(new Error('no answer for too long')));
      return upstream;
    },
    close: () => agent.destroy(),
  };
}

/** A body is only read where a method has one: it must never look like a second request. */
const WITH_BODY = new Set(['POST', 'PUT']);

function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  dial: Dial,
  reached: ReachNotes,
): void {
  const hasBody = WITH_BODY.has(incoming.method ?? '');
  const headers = passedHeaders(incoming, hasBody ? [] : ['content-length']);
  const upstream = dial(incoming, { headers });
  outgoing.on('close', () => {
    // Whoever asked is gone: nobody waits for the rest.
    if (!outgoing.writableFinished) upstream.destroy();
  });
  incoming.on('error', () => upstream.destroy());
  upstream.on('error', (error) => {
    // What is left of the body goes nowhere; the answer, if there was one, ends by itself.
    incoming.unpipe(upstream).resume();
    if (outgoing.destroyed || outgoing.headersSent) return;
    reached.failed(error);
    refuse(incoming, outgoing, UNREACHABLE);
  });
  upstream.on('response', (response) => {
    reached.answered();
    outgoing.writeHead(response.statusCode ?? 502, response.statusMessage, passedHeaders(response));
    outgoing.flushHeaders();
    response.on('error', () => outgoing.destroy());
    response.on('close', () => {
      if (!response.complete) outgoing.destroy();
    });
    response.pipe(outgoing);
  });
  if (hasBody) incoming.pipe(upstream);
  else {
    upstream.end();
    incoming.resume();
  }
}

function refuse(incoming: IncomingMessage, outgoing: ServerResponse, kind: typeof UNKNOWN): void {
  const text = problemText(kind, incoming.url);
  outgoing.writeHead(kind.status, {
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(text),
    // What is left of its body is not worth reading.
    ...(incoming.complete ? {} : { connection: 'close' }),
  });
  outgoing.end(text);
  incoming.resume();
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
