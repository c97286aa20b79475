/** drover gateway: the REST edge in front of a controller elsewhere, reached by gRPC. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { openBlobStore } from '../blobs/open.ts';
import { cachedCoordinator } from '../gateway/cache/cachedCoordinator.ts';
import { JobCache } from '../gateway/cache/jobCache.ts';
import { systemClock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import { createLog, type Log } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import { createGrpcCoordinator } from '../protocol/grpc/client.ts';
import { callerOptions } from './grpc.ts';
import { startGateway } from './parts.ts';
import type { RoleArguments } from './roles.ts';
import { shutdownOnSignals, tellReady } from './shutdown.ts';

export async function runGateway({ settings, flags }: RoleArguments): Promise<number> {
  const { coordinator: url } = flags;
  if (typeof url !== 'string') {
    throw new DroverError('INVALID_ARGUMENT', 'the controller to front is not named', {
      hint: 'drover gateway --coordinator grpc://127.0.0.1:7071',
    });
  }
  const shutdown = shutdownOnSignals();
  const log = createLog('gateway', settings.logs.level);
  const { unaryTimeoutMs: unaryMs, streamTimeoutMs: streamMs } = settings.server;
  const limits = { unaryMs, streamMs };
  const remote = createGrpcCoordinator({ url, log, limits, ...callerOptions(settings) });
  shutdown.add(async () => remote.close());
  const cache = openCache(settings, log);
  if (cache) shutdown.add(async () => cache.close());
  const { cacheAfterMs: afterMs } = settings.gateway;
  const coordinator = cache
    ? cachedCoordinator(remote, { cache, clock: systemClock, afterMs })
    : remote;
  const blobs = await openBlobStore(settings.blobs, { clock: systemClock, log });
  shutdown.add(() => blobs.close());
  const gateway = await startGateway(settings, { coordinator, blobs }, log);
  shutdown.add(() => gateway.close());
  tellReady({ url: gateway.url });
  return shutdown.ended;
}

/** Undefined where it is not wanted or cannot be had: a gateway does its work without one too. */
function openCache(
  { gateway: { cache, cacheFile: file } }: Settings,
  log: Log,
): JobCache | undefined {
  if (!cache) return undefined;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return new JobCache({ file, clock: systemClock, log });
  } catch (error) {
    log.warn(
      { file, error: String(error) },
      'no cache of jobs: gateway.cacheFile cannot be opened',
    );
    return undefined;
  }
}
