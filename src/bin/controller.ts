/**
 * drover controller: state, store and loops, with a gRPC listener; with a gateway too when asked.
 */
import { openBlobStore } from '../blobs/open.ts';
import { systemClock } from '../lib/clock.ts';
import { createLog } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import { createGrpcServer } from '../protocol/grpc/server.ts';
import { loadTokens, prepareDataFolder, writeConnection } from './connection.ts';
import { listenerOptions } from './grpc.ts';
import { startController, startGateway } from './parts.ts';
import type { RoleArguments } from './roles.ts';
import { shutdownOnSignals, tellReady } from './shutdown.ts';

export async function runController({ settings, flags }: RoleArguments): Promise<number> {
  const shutdown = shutdownOnSignals();
  const log = createLog('server', settings.logs.level);
  const { dir } = settings.data;
  prepareDataFolder(dir);
  const tokens = loadTokens(dir);
  const blobs = await openBlobStore(settings.blobs, { clock: systemClock, log });
  shutdown.add(() => blobs.close());
  const controller = await startController(
    settings,
    { admin: tokens.token, join: tokens.joinToken },
    log,
  );
  shutdown.add(() => controller.close());
  let grpcUrl = '';
  if (settings.grpc.enabled) {
    const { host, port } = settings.grpc;
    const { coordinator } = controller;
    const listener = listenerOptions(settings);
    const grpc = await createGrpcServer({ coordinator, host, port, log, ...listener });
    shutdown.add(() => grpc.close());
    grpcUrl = `grpc${listener.tls ? 's' : ''}://${host}:${grpc.port}`;
    log.info({ url: grpcUrl }, 'gRPC listens');
  }
  let url = expectedUrl(settings);
  if (flags['with-gateway']) {
    const gateway = await startGateway(settings, { ...controller, blobs }, log);
    shutdown.add(() => gateway.close());
    url = gateway.url;
  }
  writeConnection(dir, { url, ...tokens });
  tellReady({ url, grpcUrl });
  return shutdown.ended;
}

/** Where a gateway with the same settings is, which is another process then. */
function expectedUrl({ server }: Settings): string {
  if (server.publicUrl) return server.publicUrl;
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  return `http://${host}:${server.port}`;
}
