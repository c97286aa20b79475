/** The settings of gRPC as its two ends take them. */
import { addressList } from '../lib/addressList.ts';
import { DroverError } from '../lib/errors.ts';
import { isLoopback } from '../lib/loopback.ts';
import type { TlsFiles } from '../lib/tls/files.ts';
import type { Settings } from '../model/settings.ts';
import type { GrpcCoordinatorOptions } from '../protocol/grpc/connection.ts';
import type { GrpcServerOptions } from '../protocol/grpc/server.ts';

type ListenerOptions = Pick<GrpcServerOptions, 'insecure' | 'apiSecret' | 'tls' | 'allow'>;

/** For the controller. Without a certificate of its own it speaks in clear. */
export function listenerOptions(
  { grpc, server }: Settings,
  tls: TlsFiles | undefined,
): ListenerOptions {
  const { insecure, apiSecret, certFile } = grpc;
  const options: ListenerOptions = { insecure, allow: addressList(server.allow) };
  if (apiSecret) options.apiSecret = apiSecret;
  if (certFile && tls) options.tls = tls;
  return options;
}

type CallerOptions = Pick<GrpcCoordinatorOptions, 'insecure' | 'apiSecret' | 'tls'>;

/** For a gateway in front of a controller elsewhere. */
export function callerOptions({ grpc }: Settings, tls: TlsFiles | undefined): CallerOptions {
  const { insecure, apiSecret } = grpc;
  if (!apiSecret) {
    throw new DroverError('INVALID_ARGUMENT', 'a gateway needs the secret its controller knows', {
      hint: 'give both the same DROVER_GRPC_API_SECRET, or the same file by grpc.apiSecretFile',
    });
  }
  return { insecure, apiSecret, ...(tls ? { tls } : {}) };
}

/** What a call to this controller shows to whoever listens on the way. */
export function callExposures(url: string): string[] {
  const host = /^grpc:\/\/(\[[^\]]+\]|[^/:]+)/.exec(url)?.[1];
  if (host === undefined || isLoopback(host)) return [];
  return [`calls to ${url} have no TLS: tokens cross the network readable`];
}
