/** drover gateway: the REST edge in front of a controller elsewhere, reached by gRPC. */
import { openBlobStore } from '../blobs/open.ts';
import { underPolicy } from '../gateway/policy.ts';
import { systemClock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import { createLog } from '../lib/log.ts';
import { createGrpcCoordinator } from '../protocol/grpc/client.ts';
import { callerOptions, callExposures } from './grpc.ts';
import { withJobCache } from './jobCache.ts';
import { startGateway } from './parts.ts';
import { openPolicy } from './policyFile.ts';
import type { RoleArguments } from './role.ts';
import { shutdownOnSignals, tellReady } from './shutdown.ts';
import { grpcTls, withTlsMetrics } from './tls.ts';

export async function runGateway({ settings, flags }: RoleArguments): Promise<number> {
  const { coordinator: url } = flags;
  if (typeof url !== 'string') {
    throw new DroverError('INVALID_ARGUMENT', 'the controller to front is not named', {
      hint: 'drover gateway --coordinator grpc://127.0.0.1:7071',
    });
  }
  const shutdown = shutdownOnSignals();
  const log = createLog('gateway', settings.logs.level);
  const tls = grpcTls(settings, log);
  shutdown.add(async () => tls?.close());
  const { unaryTimeoutMs: unaryMs, streamTimeoutMs: streamMs } = settings.server;
  const limits = { unaryMs, streamMs };
  const remote = createGrpcCoordinator({ url, log, limits, ...callerOptions(settings, tls) });
  shutdown.add(async () => remote.close());
  const known = withJobCache(remote, settings, log);
  shutdown.add(async () => known.close());
  const blobs = await openBlobStore(settings.blobs, { clock: systemClock, log });
  shutdown.add(() => blobs.close());
  const policy = await openPolicy(settings.policy.file, { clock: systemClock, log });
  shutdown.add(async () => policy.close());
  const ruled =
    settings.policy.file === '' ? known.coordinator : underPolicy(known.coordinator, policy);
  const coordinator = withTlsMetrics(ruled, 'drover_gateway_caller', tls);
  const exposures = callExposures(url);
  const gateway = await startGateway(settings, { coordinator, blobs, exposures }, log);
  shutdown.add(() => gateway.close());
  tellReady({ url: gateway.url });
  return shutdown.ended;
}
