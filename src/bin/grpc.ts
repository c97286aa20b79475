/** The settings of gRPC as its two ends take them. */
import { readFileSync } from 'node:fs';
import { DroverError } from '../lib/errors.ts';
import type { Settings } from '../model/settings.ts';
import type { GrpcCoordinatorOptions } from '../protocol/grpc/connection.ts';
import type { GrpcServerOptions } from '../protocol/grpc/server.ts';

type ListenerOptions = Pick<GrpcServerOptions, 'insecure' | 'apiSecret' | 'tls'>;

/** For the controller. */
export function listenerOptions({ grpc }: Settings): ListenerOptions {
  const { insecure, apiSecret, certFile, keyFile, caFile } = grpc;
  const options: ListenerOptions = { insecure };
  if (apiSecret) options.apiSecret = apiSecret;
  if (certFile) {
    options.tls = { cert: pem('grpc.certFile', certFile), key: pem('grpc.keyFile', keyFile) };
    if (caFile) options.tls.ca = pem('grpc.caFile', caFile);
  }
  return options;
}

type CallerOptions = Pick<GrpcCoordinatorOptions, 'insecure' | 'apiSecret' | 'tls'>;

/** For a gateway in front of a controller elsewhere. */
export function callerOptions({ grpc }: Settings): CallerOptions {
  const { insecure, apiSecret, certFile, keyFile, caFile } = grpc;
  if (!apiSecret) {
    throw new DroverError('INVALID_ARGUMENT', 'a gateway needs the secret its controller knows', {
      hint: 'give both the same DROVER_GRPC_API_SECRET, or the same file by grpc.apiSecretFile',
    });
  }
  const tls: CallerOptions['tls'] = {};
  if (caFile) tls.ca = pem('grpc.caFile', caFile);
  if (certFile) {
    tls.cert = pem('grpc.certFile', certFile);
    tls.key = pem('grpc.keyFile', keyFile);
  }
  return { insecure, apiSecret, tls };
}

function pem(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new DroverError('INVALID_ARGUMENT', `${setting} names ${path}, which cannot be read`, {
      hint: 'Check that it exists and that this user may read it.',
      cause,
    });
  }
}
