/** The connection behind a remote Coordinator: metadata, time limits, and errors made whole. */
import type { ClientHttp2Stream, Http2Session, SecureClientSessionOptions } from 'node:http2';
import { type CallOptions, type Client, createClient } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { DroverError } from '../../lib/errors.ts';
import { isLoopback } from '../../lib/loopback.ts';
import { systemRandom, type Random } from '../../lib/random.ts';
import type { Pems } from '../../lib/tls/pems.ts';
import type { Principal } from '../../model/token.ts';
import { Agent } from '../gen/drover/v1/agent_pb.ts';
import { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { METADATA, principalToMetadata, WRONG_SECRET } from './caller.ts';
import { fromConnectError } from './errors.ts';
import { GRPC_LIMITS, sessionOptions, type GrpcLimits } from './limits.ts';

/** A connection with calls on it that does not answer this often is given up. */
const PING_INTERVAL_MS = 10_000;
const PING_TIMEOUT_MS = 5_000;

export interface GrpcCoordinatorOptions {
  /** grpc://host:port, or grpcs://host:port with TLS. */
  url: string;
  /** For gateways: calls are made on behalf of the principal given to each method. */
  apiSecret?: string;
  /** For users: calls are made as the token's owner, and the principal given is not looked at. */
  token?: string;
  /**
   * `ca` when the server's certificate is not signed by a public one; the rest for mTLS. Read for
   * each connection, so that a new one is made with what is there by then.
   */
  tls?: Pems;
  /** Allows clear text to another machine. */
  insecure?: boolean;
  limits?: Partial<GrpcLimits>;
  random?: Random;
}

/** A wait is asked for in pieces, so that a dead connection is noticed and proxies keep it open. */
export const WAIT_PIECE_MS = 20_000;

export interface Connection {
  coordinator: Client<typeof CoordinatorService>;
  agent: Client<typeof Agent>;
  /** Makes one call and reads its answer; every failure is a DroverError. */
  call: <Response, Result>(
    metadata: Record<string, string>,
    rpc: (options: CallOptions) => Promise<Response>,
    read: (response: Response) => Result,
    waitMs?: number,
  ) => Promise<Result>;
  /** Metadata of a call on somebody's behalf. */
  by: (who: Principal) => Record<string, string>;
  close: () => void;
}

export function connect(options: GrpcCoordinatorOptions): Connection {
  const { apiSecret, token, random = systemRandom } = options;
  const limits = { ...GRPC_LIMITS, ...options.limits };
  const baseUrl = httpUrl(options);
  const ping = { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS };
  const session = clientOptions(limits, options.tls);
  const sessionManager = new WideSessionManager(
    limits.connectionWindowBytes,
    baseUrl,
    ping,
    session,
  );
  const transport = createGrpcTransport({
    baseUrl,
    sessionManager,
    acceptCompression: [],
    readMaxBytes: limits.responseBytes,
    writeMaxBytes: limits.requestBytes,
  });
  const closed = new AbortController();
  const secret = apiSecret === undefined ? {} : { [METADATA.apiSecret]: apiSecret };
  const bearer = token === undefined ? {} : { [METADATA.authorization]: `Bearer ${token}` };
  return {
    coordinator: createClient(CoordinatorService, transport),
    agent: createClient(Agent, transport),
    async call(metadata, rpc, read, waitMs = 0) {
      const headers = { [METADATA.requestId]: random.hex(8), ...bearer, ...secret, ...metadata };
      refuseUnprintable(headers);
      const timeoutMs = limits.unaryMs + waitMs;
      const response = await rpc({ headers, timeoutMs, signal: closed.signal }).catch(
        (error: unknown) => {
          throw notTheUsers(fromConnectError(error));
        },
      );
      return readAnswer(response, read);
    },
    by: (who) => (apiSecret === undefined ? {} : principalToMetadata(who)),
    close() {
      closed.abort(new DroverError('UNAVAILABLE', 'the connection to the controller was closed'));
      sessionManager.abort();
    },
  };
}

/** Own getters, which Node reads each time it connects. */
function clientOptions(limits: GrpcLimits, tls: Pems = {}): SecureClientSessionOptions {
  return {
    ...sessionOptions(limits),
    get ca() {
      return tls.ca;
    },
    get cert() {
      return tls.cert;
    },
    get key() {
      return tls.key;
    },
  };
}

/** Node can widen a connection's window only once it is there, and Connect opens it by itself. */
class WideSessionManager extends Http2SessionManager {
  readonly #wide = new WeakSet<Http2Session>();
  readonly #windowBytes: number;

  constructor(windowBytes: number, ...session: ConstructorParameters<typeof Http2SessionManager>) {
    super(...session);
    this.#windowBytes = windowBytes;
  }

  override async request(
    ...call: Parameters<Http2SessionManager['request']>
  ): Promise<ClientHttp2Stream> {
    const stream = await super.request(...call);
    const { session } = stream;
    if (session && !this.#wide.has(session)) {
      this.#wide.add(session);
      session.setLocalWindowSize(this.#windowBytes);
    }
    return stream;
  }
}

/** A user whose gateway is not trusted must not be told that his token is wrong. */
function notTheUsers(error: DroverError): DroverError {
  if (error.message !== WRONG_SECRET) return error;
  const detail = 'the controller does not trust this gateway: their secrets differ';
  return new DroverError('UNAVAILABLE', detail, {
    hint: 'Start both with the same DROVER_GRPC_API_SECRET, or the same grpc.apiSecretFile.',
    cause: error,
  });
}

function httpUrl({ url, insecure }: GrpcCoordinatorOptions): string {
  const match = /^grpc(s?):\/\/(\[[^\]]+\]|[^/:]+)(:\d+)?\/?$/.exec(url);
  if (!match) {
    throw new DroverError('INVALID_ARGUMENT', `${JSON.stringify(url)} is not a controller's URL`, {
      hint: 'Write grpc://host:port, or grpcs://host:port with TLS.',
    });
  }
  const [, tls = '', host = '', port = ''] = match;
  if (!tls && !insecure && !isLoopback(host)) {
    throw new DroverError('INVALID_ARGUMENT', `gRPC to ${host} would send tokens in clear text`, {
      hint: 'Use grpcs://, or allow it with insecure.',
    });
  }
  return `http${tls}://${host}${port}`;
}

/** A token can come from anybody; one that no header can carry is nobody's. */
function refuseUnprintable(headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (/^[\x20-\x7e]*$/.test(value)) continue;
    throw new DroverError('UNAUTHENTICATED', `${name} holds characters no token has`);
  }
}

/** An answer we cannot read is the controller's fault, not the user's. */
function readAnswer<Response, Result>(
  response: Response,
  read: (response: Response) => Result,
): Result {
  try {
    return read(response);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new DroverError('INTERNAL', `the controller's answer could not be read: ${why}`, {
      hint: 'Check that controller and gateway are of the same version.',
      cause,
    });
  }
}
