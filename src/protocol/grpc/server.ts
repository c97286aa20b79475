/** The gRPC listener: the Coordinator contract, the agent calls and health on HTTP/2. */
import {
  createServer,
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import { createConnectRouter } from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import type { AddressList } from '../../lib/addressList.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import { isLoopback } from '../../lib/loopback.ts';
import { systemRandom, type Random } from '../../lib/random.ts';
import type { TlsSource } from '../../lib/tls/files.ts';
import { gateConnections } from '../../lib/tls/gate.ts';
import { tlsServerOptions } from '../../lib/tls/options.ts';
import type { Coordinator } from '../coordinator.ts';
import { Agent } from '../gen/drover/v1/agent_pb.ts';
import { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { agentService } from './agentService.ts';
import { coordinatorService } from './coordinatorService.ts';
import { gate, guard } from './guard.ts';
import { healthService } from './healthService.ts';
import { GRPC_LIMITS, sessionOptions, type GrpcLimits } from './limits.ts';
import { unaryHandlers } from './unaryServer.ts';

export interface GrpcServerOptions {
  coordinator: Coordinator;
  host: string;
  /** 0 takes any free one. */
  port: number;
  /** With `ca`, clients must show a certificate signed by it. New ones serve new connections. */
  tls?: TlsSource;
  /** Allows clear text on an address other machines can reach. */
  insecure?: boolean;
  /** Who may connect, beside processes on this machine. Unset or empty: anybody. */
  allow?: AddressList;
  /** Gateways that know it may call on behalf of any user. Unset: none may. */
  apiSecret?: string;
  log: Log;
  limits?: Partial<GrpcLimits>;
  random?: Random;
}

export interface GrpcServer {
  port: number;
  /** Refuses new calls, ends streams, waits for calls in progress up to `drainMs`. */
  close(): Promise<void>;
}

export async function createGrpcServer(options: GrpcServerOptions): Promise<GrpcServer> {
  refuseClearText(options);
  const limits = { ...GRPC_LIMITS, ...options.limits };
  const closing = new AbortController();
  const routes = createRoutes(options, limits, closing.signal);
  const server = createHttpServer(options, limits);
  const { allow, log } = options;
  if (allow && !allow.isEmpty) {
    const admits = (address: string): boolean => isLoopback(address) || allow.has(address);
    gateConnections(server, admits, (address) => log.debug({ address }, 'not in server.allow'));
  }
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.setLocalWindowSize(limits.connectionWindowBytes);
    session.on('close', () => sessions.delete(session));
  });
  server.on('request', (request, response) => {
    void serve(routes, request, response, options.log);
  });
  // Broken clients end their own connection only; without a listener some would end the process.
  for (const event of ['sessionError', 'tlsClientError', 'clientError']) {
    server.on(event, (error: Error) =>
      options.log.debug({ event, error: error.message }, 'client'),
    );
  }
  await listen(server, options);
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : options.port,
    close: () => close(server, sessions, closing, limits.drainMs),
  };
}

function refuseClearText({ host, tls, insecure }: GrpcServerOptions): void {
  if (tls || insecure || isLoopback(host)) return;
  throw new DroverError('INVALID_ARGUMENT', `gRPC on ${host} would send tokens in clear text`, {
    hint: 'Give a certificate and key, listen on 127.0.0.1, or allow it with insecure.',
  });
}

interface Routes {
  unary: ReadonlyMap<string, ReturnType<typeof unaryHandlers>[number][1]>;
  streams: ReadonlyMap<string, UniversalHandler>;
}

function createRoutes(
  options: GrpcServerOptions,
  limits: GrpcLimits,
  closing: AbortSignal,
): Routes {
  const { coordinator, apiSecret, log, random = systemRandom } = options;
  const requestGate = gate({ coordinator, apiSecret, log, random });
  const router = createConnectRouter({
    grpc: true,
    grpcWeb: false,
    connect: false,
    // Compressing costs more than it saves between machines of one cluster.
    acceptCompression: [],
    readMaxBytes: limits.requestBytes,
    writeMaxBytes: limits.responseBytes,
    maxTimeoutMs: limits.streamMs,
    requestGate,
    interceptors: [guard({ limits, closing, log })],
  });
  const calls = coordinatorService({ coordinator, limits, closing });
  const agentCalls = agentService(coordinator);
  router.service(CoordinatorService, calls);
  router.service(Health, healthService({ coordinator, limits, closing, log }));
  const unary = { gate: requestGate, limits, closing, log };
  return {
    unary: new Map([
      ...unaryHandlers(CoordinatorService, calls, unary),
      ...unaryHandlers(Agent, agentCalls, unary),
    ]),
    streams: new Map(router.handlers.map((handler) => [handler.requestPath, handler])),
  };
}

function createHttpServer(
  { tls }: GrpcServerOptions,
  limits: GrpcLimits,
): Http2Server | Http2SecureServer {
  const session = sessionOptions(limits);
  const server = tls ? createTlsServer(tls, session) : createServer(session);
  server.maxConnections = limits.connections;
  return server;
}

/** Calls in progress go on under the certificate their connection began with. */
function createTlsServer(
  tls: TlsSource,
  session: ReturnType<typeof sessionOptions>,
): Http2SecureServer {
  const server = createSecureServer({ ...tlsServerOptions(tls), ...session });
  tls.onChange?.(() => server.setSecureContext(tlsServerOptions(tls)));
  return server;
}

/** Connect's own adapter prints to the console and throws on a bad authority; this one logs. */
async function serve(
  routes: Routes,
  request: Http2ServerRequest,
  response: Http2ServerResponse,
  log: Log,
): Promise<void> {
  try {
    const path = request.url.split('?', 1)[0] ?? '';
    const unary = routes.unary.get(path);
    if (unary) return await unary(response, headersOf(request));
    const handler = routes.streams.get(path);
    if (!handler) {
      response.writeHead(404).end();
      return;
    }
    const call = universalRequestFromNodeRequest(request, response, undefined, undefined);
    await universalResponseToNodeResponse(await handler(call), response);
  } catch (error) {
    // The client left while it was answered, or sent something that is not a request.
    log.debug({ path: request.url, error: String(error) }, 'a call broke off');
    if (!response.headersSent && !response.stream?.destroyed) response.writeHead(400).end();
  }
}

function headersOf(request: Http2ServerRequest): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === 'string' && !name.startsWith(':')) headers.set(name, value);
  }
  return headers;
}

function listen(
  server: Http2Server | Http2SecureServer,
  { host, port }: GrpcServerOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const hint = 'Choose another address or port, or stop what holds it.';
      const why = cause.code === 'EADDRINUSE' ? 'the port is in use' : cause.message;
      const message = `cannot listen for gRPC on ${host}:${port}: ${why}`;
      reject(new DroverError('CONFLICT', message, { hint, cause }));
    };
    server.once('error', onError);
    server.listen(port, host, () => {
      server.off('error', onError);
      resolve();
    });
  });
}

async function close(
  server: Http2Server | Http2SecureServer,
  sessions: Set<ServerHttp2Session>,
  closing: AbortController,
  drainMs: number,
): Promise<void> {
  if (closing.signal.aborted) return;
  closing.abort(new DroverError('UNAVAILABLE', 'the server is stopping', { hint: 'Call again.' }));
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const session of sessions) session.close();
  const timer = setTimeout(() => {
    for (const session of sessions) session.destroy();
  }, drainMs);
  await closed;
  clearTimeout(timer);
}
