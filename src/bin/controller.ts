/**
 * drover controller: state, store and loops, with a gRPC listener; with a gateway too when asked.
 */
import { createLog } from '../lib/log.ts';
import { createGrpcServer } from '../protocol/grpc/server.ts';
import { loadTokens, prepareDataFolder, writeConnection } from './connection.ts';
import { startController, startGateway } from './parts.ts';
import type { RoleArguments } from './roles.ts';
import { shutdownOnSignals, tellReady } from './shutdown.ts';

export async function runController({ settings, flags }: RoleArguments): Promise<number> {
  const shutdown = shutdownOnSignals();
  const log = createLog('server', settings.logs.level);
  const { dir } = settings.data;
  prepareDataFolder(dir);
  const tokens = loadTokens(dir);
  const controller = await startController(
    settings,
    { admin: tokens.token, join: tokens.joinToken },
    log,
  );
  shutdown.add(() => controller.close());
  if (settings.grpc.enabled) {
    const { host, port } = settings.grpc;
    const { coordinator } = controller;
    const grpc = await createGrpcServer({ coordinator, host, port, log });
    shutdown.add(() => grpc.close());
  }
  let url = '';
  if (flags['with-gateway']) {
    const gateway = await startGateway(settings, controller.coordinator, log);
    shutdown.add(() => gateway.close());
    url = gateway.url;
    writeConnection(dir, { url, ...tokens });
  }
  tellReady({ url });
  return shutdown.ended;
}
