/**
 * drover controller: state, store and loops, with a gRPC listener; with a gateway too when asked.
 */
import { systemClock } from '../lib/clock.ts';
import { createLog } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import { loadTokens, prepareDataFolder, writeConnection } from './connection.ts';
import { startController } from './controllerPart.ts';
import type { RoleArguments } from './roles.ts';
import { shutdownOnSignals, tellReady } from './shutdown.ts';

export async function runController({ settings, flags }: RoleArguments): Promise<number> {
  const shutdown = shutdownOnSignals();
  const log = createLog('server', settings.logs.level);
  const { dir } = settings.data;
  prepareDataFolder(dir);
  const tokens = loadTokens(dir);
  const [controller, { openBlobStore, startGateway, startGrpc }] = await Promise.all([
    startController(settings, { admin: tokens.token, join: tokens.joinToken }, log),
    // Loaded while the controller's threads load what is theirs.
    import('./listeners.ts'),
  ]);
  shutdown.add(() => controller.close());
  const blobs = await openBlobStore(settings.blobs, { clock: systemClock, log });
  shutdown.add(() => blobs.close());
  let grpcUrl = '';
  if (settings.grpc.enabled) {
    const grpc = await startGrpc(settings, controller, log);
    shutdown.add(() => grpc.close());
    grpcUrl = grpc.url;
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
