/**
 * drover controller: state, store and loops, with a gRPC listener; with a gateway too when asked.
 */
import { resolve } from 'node:path';
import { openBlobStore } from '../blobs/open.ts';
import { systemClock } from '../lib/clock.ts';
import { createLog } from '../lib/log.ts';
import { grpcExposures } from '../model/listenerSettings.ts';
import type { Settings } from '../model/settings.ts';
import { createGrpcServer } from '../protocol/grpc/server.ts';
import { loadTokens, prepareDataFolder, writeConnection, type Connection } from './connection.ts';
import { listenerOptions } from './grpc.ts';
import { grpcTls, withTlsMetrics } from './tls.ts';
import { startController, startGateway } from './parts.ts';
import type { RoleArguments } from './roles.ts';
import { shutdownOnSignals, tellReady } from './shutdown.ts';

export async function runController({ settings, flags }: RoleArguments): Promise<number> {
  const shutdown = shutdownOnSignals();
  const log = createLog('server', settings.logs.level);
  const { dir } = settings.data;
  prepareDataFolder(dir);
  const tokens = loadTokens(dir);
  const tls = settings.grpc.enabled ? grpcTls(settings, log) : undefined;
  shutdown.add(async () => tls?.close());
  const blobs = await openBlobStore(settings.blobs, { clock: systemClock, log });
  shutdown.add(() => blobs.close());
  const controller = await startController(
    settings,
    { admin: tokens.token, join: tokens.joinToken },
    log,
  );
  shutdown.add(() => controller.close());
  const coordinator = withTlsMetrics(controller.coordinator, 'drover_grpc', tls);
  const exposures = grpcExposures(settings);
  let grpcUrl = '';
  if (settings.grpc.enabled) {
    const { host, port } = settings.grpc;
    const listener = listenerOptions(settings, tls);
    const grpc = await createGrpcServer({ coordinator, host, port, log, ...listener });
    shutdown.add(() => grpc.close());
    grpcUrl = `grpc${listener.tls ? 's' : ''}://${host}:${grpc.port}`;
    log.info({ url: grpcUrl }, 'gRPC listens');
  }
  let url = expectedUrl(settings);
  if (flags['with-gateway']) {
    const gateway = await startGateway(settings, { coordinator, blobs, exposures }, log);
    shutdown.add(() => gateway.close());
    url = gateway.url;
  } else {
    for (const exposure of exposures) log.warn({ insecure: true }, exposure);
  }
  writeConnection(dir, { url, ...tokens, ...clientFiles(settings) });
  tellReady({ url, grpcUrl });
  return shutdown.ended;
}

/** Where a gateway with the same settings is, which is another process then. */
function expectedUrl({ server }: Settings): string {
  if (server.publicUrl) return server.publicUrl;
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  return `http${server.certFile ? 's' : ''}://${host}:${server.port}`;
}

/** What the command line beside this server needs to trust it. */
function clientFiles({ agent }: Settings): Partial<Connection> {
  const files = Object.entries({
    caFile: agent.caFile,
    certFile: agent.certFile,
    keyFile: agent.keyFile,
  });
  return Object.fromEntries(
    files.filter(([, file]) => file).map(([name, file]) => [name, resolve(file)]),
  );
}
