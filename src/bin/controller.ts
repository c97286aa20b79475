/**
 * drover controller: state, store and loops, with a gRPC listener; with a gateway too when asked.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../lib/clock.ts';
import { createLog } from '../lib/log.ts';
import { grpcExposures } from '../model/listenerSettings.ts';
import type { Settings } from '../model/settings.ts';
import { loadTokens, prepareDataFolder, writeConnection, type Connection } from './connection.ts';
import { startController } from './controllerPart.ts';
import type { RoleArguments } from './role.ts';
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
  const exposures = grpcExposures(settings);
  let { coordinator } = controller;
  let grpcUrl = '';
  if (settings.grpc.enabled) {
    const grpc = await startGrpc(settings, controller, log);
    shutdown.add(() => grpc.close());
    ({ url: grpcUrl, coordinator } = grpc);
  }
  let url = expectedUrl(settings);
  if (flags['with-gateway']) {
    const gateway = await startGateway(settings, { coordinator, blobs, exposures }, log);
    shutdown.add(() => gateway.close());
    url = gateway.url;
  } else {
    for (const exposure of exposures) log.warn({ insecure: true }, exposure);
  }
  await controller.tellHome({ url, authorities: authoritiesOf(settings) });
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

/** Whom machines that are launched trust: the same as the agent beside this server. */
function authoritiesOf({ agent: { caFile } }: Settings): string {
  return caFile === '' ? '' : readFileSync(caFile, 'utf8');
}

/** What the command line beside this server needs to trust it. */
function clientFiles({ agent }: Settings): Partial<Connection> {
  const { caFile, certFile, keyFile } = agent;
  const given = Object.entries({ caFile, certFile, keyFile }).filter(([, file]) => file);
  return Object.fromEntries(given.map(([name, file]) => [name, resolve(file)]));
}
