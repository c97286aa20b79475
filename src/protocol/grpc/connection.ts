/** The connection behind a remote Coordinator: metadata, time limits, and errors made whole. */
import { type CallOptions, type Client, createClient } from '@connectrpc/connect';
import { DroverError } from '../../lib/errors.ts';
import { silentLog, type Log } from '../../lib/log.ts';
import { isLoopback } from '../../lib/loopback.ts';
import { systemRandom, type Random } from '../../lib/random.ts';
import type { Pems } from '../../lib/tls/pems.ts';
import type { Principal } from '../../model/token.ts';
import { Agent } from '../gen/drover/v1/agent_pb.ts';
import { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { requestScope } from '../requestScope.ts';
import { METADATA, principalToMetadata, WRONG_SECRET } from './caller.ts';
import { Channel, StreamChannels } from './channel.ts';
import { failureOf } from './errors.ts';
import { GRPC_LIMITS, type GrpcLimits } from './limits.ts';
import { createTransport } from './transport.ts';

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
  /** Told what callers may not see of failures. */
  log?: Log;
}

/** A wait is asked for in pieces, so that a dead connection is noticed and proxies keep it open. */
export const WAIT_PIECE_MS = 20_000;

type Metadata = Record<string, string>;

export interface Connection {
  coordinator: Client<typeof CoordinatorService>;
  agent: Client<typeof Agent>;
  /** Makes one call and reads its answer; every failure is a DroverError. */
  call: <Response, Result>(
    metadata: Metadata,
    rpc: (options: CallOptions) => Promise<Response>,
    read: (response: Response) => Result,
    waitMs?: number,
  ) => Promise<Result>;
  /** The same of a call that is answered piece by piece, until the signal comes. */
  stream: <Response, Result>(
    metadata: Metadata,
    rpc: (options: CallOptions) => AsyncIterable<Response>,
    read: (response: Response) => Result,
    signal: AbortSignal,
  ) => AsyncIterable<Result>;
  /** Metadata of a call on somebody's behalf. */
  by: (who: Principal) => Metadata;
  close: () => void;
}

export function connect(options: GrpcCoordinatorOptions): Connection {
  const { apiSecret, token, random = systemRandom, log = silentLog } = options;
  const limits = { ...GRPC_LIMITS, ...options.limits };
  const { calls, streams } = openChannels(options, limits);
  const transport = createTransport({ calls, streams, limits });
  const secret = apiSecret === undefined ? {} : { [METADATA.apiSecret]: apiSecret };
  const bearer = token === undefined ? {} : { [METADATA.authorization]: `Bearer ${token}` };
  const headersOf = (metadata: Metadata): Metadata => {
    const requestId = requestScope.getStore() ?? random.hex(8);
    const headers = { [METADATA.requestId]: requestId, ...bearer, ...secret, ...metadata };
    refuseUnprintable(headers[METADATA.authorization] ?? '');
    return headers;
  };
  return {
    coordinator: createClient(CoordinatorService, transport),
    agent: createClient(Agent, transport),
    async call(metadata, rpc, read, waitMs = 0) {
      const headers = headersOf(metadata);
      const timeoutMs = limits.unaryMs + waitMs;
      const response = await rpc({ headers, timeoutMs }).catch((error: unknown) => {
        throw told(error, headers, log);
      });
      return readAnswer(response, read);
    },
    async *stream(metadata, rpc, read, signal) {
      const headers = headersOf(metadata);
      try {
        for await (const response of rpc({ headers, timeoutMs: limits.streamMs, signal })) {
          yield readAnswer(response, read);
        }
      } catch (error) {
        // Whoever left is told nothing.
        if (signal.aborted) return;
        throw told(error, headers, log);
      }
    },
    by: (who) => (apiSecret === undefined ? {} : principalToMetadata(who)),
    close() {
      calls.close();
      streams.close();
    },
  };
}

function openChannels(
  options: GrpcCoordinatorOptions,
  limits: GrpcLimits,
): { calls: Channel; streams: StreamChannels } {
  const { tls = {} } = options;
  const common = { origin: httpUrl(options), tls };
  // A reader that is slow or stuck holds this much here; and there may be thousands of them.
  const forStreams = { ...limits, streamWindowBytes: limits.followWindowBytes };
  return {
    calls: new Channel({ ...common, limits, held: true }),
    streams: new StreamChannels(
      { ...common, limits: forStreams, held: false },
      limits.followsPerConnection,
    ),
  };
}

/** What the caller may know; the rest goes to the log, under the id that the caller is given. */
function told(thrown: unknown, headers: Metadata, log: Log): DroverError {
  const { error, withheld } = failureOf(thrown);
  const requestId = headers[METADATA.requestId];
  if (withheld) {
    const coordinator_error = JSON.parse(withoutSecrets(JSON.stringify(withheld), headers));
    const level = error.code === 'INTERNAL' ? 'error' : 'warn';
    log[level]({ requestId, coordinator_error }, `a call failed: ${error.message}`);
  }
  if (error.message === WRONG_SECRET) return untrusted();
  const { hint } = error;
  return new DroverError(error.code, withoutSecrets(error.message, headers), {
    ...(hint !== undefined && { hint: withoutSecrets(hint, headers) }),
  });
}

/** A coordinator may repeat what it was sent; that goes no further. */
function withoutSecrets(text: string, headers: Metadata): string {
  let safe = text;
  for (const [name, value] of Object.entries(headers)) {
    if (OPEN_METADATA.has(name) || value.length < SHORTEST_SECRET) continue;
    safe = safe.replaceAll(value.replace(/^Bearer /, ''), '[redacted]');
  }
  return safe;
}

/** Everything else that is sent with a call is for the coordinator's eyes. */
const OPEN_METADATA: ReadonlySet<string> = new Set(
  Object.values(METADATA).filter((name) => !['authorization', 'x-api-secret'].includes(name)),
);
/** Shorter ones are words that stand anywhere; no secret is that short. */
const SHORTEST_SECRET = 8;

/** A user whose gateway is not trusted must not be told that his token is wrong. */
function untrusted(): DroverError {
  const detail = 'the controller does not trust this gateway: their secrets differ';
  return new DroverError('UNAVAILABLE', detail, {
    hint: 'Start both with the same DROVER_GRPC_API_SECRET, or the same grpc.apiSecretFile.',
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
function refuseUnprintable(authorization: string): void {
  if (/^[\x20-\x7e]*$/.test(authorization)) return;
  const detail = `${METADATA.authorization} holds characters no token has`;
  throw new DroverError('UNAUTHENTICATED', detail);
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
