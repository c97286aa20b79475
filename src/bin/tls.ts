/** Certificates, addresses and origins from the settings, as each end of a connection has them. */
import { Registry } from 'prom-client';
import type { GatewayOptions } from '../gateway/gateway.ts';
import { tlsMetrics } from '../gateway/security/metrics.ts';
import { systemClock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { TlsFiles } from '../lib/tls/files.ts';
import type { PemFiles } from '../lib/tls/pems.ts';
import type { Settings } from '../model/settings.ts';
import type { Coordinator } from '../protocol/coordinator.ts';

type ListenerParts = Pick<
  GatewayOptions,
  | 'host'
  | 'port'
  | 'insecure'
  | 'publicUrl'
  | 'tls'
  | 'allow'
  | 'trustedProxies'
  | 'corsOrigins'
  | 'exposures'
>;

/** Of the gateway. Its certificate files are the caller's to close. */
export function listenerParts({ server }: Settings, exposures: string[], log: Log): ListenerParts {
  const { host, port, insecure, publicUrl, allow, trustedProxies, cors } = server;
  const parts = { host, port, insecure, publicUrl, allow, trustedProxies, exposures };
  const tls = openTls('server', [server.certFile, server.keyFile, server.clientCaFile], log, {
    ca: 'clientCaFile',
  });
  return { ...parts, corsOrigins: cors.origins, ...(tls ? { tls } : {}) };
}

/** Of either end of gRPC; undefined where no file is named. */
export function grpcTls({ grpc }: Settings, log: Log): TlsFiles | undefined {
  return openTls('grpc', [grpc.certFile, grpc.keyFile, grpc.caFile], log);
}

function openTls(
  section: string,
  [certFile = '', keyFile = '', caFile = '']: string[],
  log: Log,
  names: { ca?: string } = {},
): TlsFiles | undefined {
  const files: PemFiles = {};
  if (certFile) files.cert = { setting: `${section}.certFile`, path: certFile };
  if (keyFile) files.key = { setting: `${section}.keyFile`, path: keyFile };
  if (caFile) files.ca = { setting: `${section}.${names.ca ?? 'caFile'}`, path: caFile };
  return Object.keys(files).length === 0
    ? undefined
    : new TlsFiles({ files, clock: systemClock, log });
}

/** The metrics of a coordinator, and how the certificates of the connection to it are. */
export function withTlsMetrics<Kind extends Coordinator>(
  coordinator: Kind,
  prefix: string,
  tls: TlsFiles | undefined,
): Kind {
  if (!tls) return coordinator;
  const registry = new Registry();
  tlsMetrics(registry, prefix, tls);
  const metrics = async (): Promise<string> => {
    const [theirs, own] = await Promise.all([coordinator.metrics(), registry.metrics()]);
    return theirs === '' || theirs.endsWith('\n') ? theirs + own : `${theirs}\n${own}`;
  };
  return { ...coordinator, metrics };
}
