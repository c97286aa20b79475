/** The outermost layer in numbers: what is open, who was turned away, how certificates are. */
import { Counter, Gauge, type Metric, type Registry } from 'prom-client';
import type { TlsFiles } from '../../lib/tls/files.ts';
import type { Edge } from './edge.ts';

export function edgeMetrics(registry: Registry, edge: Edge): void {
  add(
    registry,
    new Gauge({
      name: 'drover_gateway_insecure',
      help: '1 where tokens cross the network readable because `insecure` allows it.',
      registers: [],
      collect() {
        this.set(edge.exposures.length > 0 ? 1 : 0);
      },
    }),
    new Counter({
      name: 'drover_gateway_connections_refused_total',
      help: 'Connections refused because server.allow does not name their address.',
      registers: [],
      collect() {
        this.reset();
        this.inc(edge.refusedConnections());
      },
    }),
  );
  if (edge.tls) tlsMetrics(registry, 'drover_gateway', edge.tls);
}

/** `prefix` tells the end of TLS: one page may tell of several. */
export function tlsMetrics(registry: Registry, prefix: string, tls: TlsFiles): void {
  add(
    registry,
    new Gauge({
      name: `${prefix}_certificate_expires_timestamp_seconds`,
      help: 'When the certificate in use expires.',
      registers: [],
      collect() {
        this.set((tls.expiresAtMs ?? 0) / 1000);
      },
    }),
    new Counter({
      name: `${prefix}_certificate_renewals_total`,
      help: 'New certificate files, taken into use or refused as broken: then the old ones stay.',
      labelNames: ['outcome'],
      registers: [],
      collect() {
        this.reset();
        this.inc({ outcome: 'taken' }, tls.renewals);
        this.inc({ outcome: 'refused' }, tls.failures);
      },
    }),
  );
}

function add(registry: Registry, ...metrics: Metric[]): void {
  for (const metric of metrics) registry.registerMetric(metric);
}
