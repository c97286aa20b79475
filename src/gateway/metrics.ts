/** The gateway's own Prometheus metrics; the controller's are put before them at /metrics. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Edge } from './security/edge.ts';
import { edgeMetrics } from './security/metrics.ts';

/** From a cached read to a long poll. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export interface RouteMetrics {
  observe(status: number, tookMs: number): void;
}

interface GatewaySources {
  inFlight: () => number;
  tokenCacheHits: () => number;
  tokenCacheMisses: () => number;
  tokenCacheEntries: () => number;
  callLimit: () => number;
  /** By reason. */
  limited: () => Record<string, number>;
  edge: Edge;
}

export interface GatewayMetrics {
  route(method: string, route: string): RouteMetrics;
  /** Values that others keep, read when the page is asked for. */
  connect(sources: GatewaySources): void;
  text(): Promise<string>;
}

export function createGatewayMetrics(): GatewayMetrics {
  const registry = new Registry();
  const requests = new Counter({
    name: 'drover_gateway_requests_total',
    help: 'Requests answered, by route and status; 499 is a client that left first.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'drover_gateway_request_duration_seconds',
    help: 'Time from the request to the end of its answer, by route.',
    labelNames: ['method', 'route'],
    buckets: SECONDS,
    registers: [registry],
  });
  return {
    route(method, route) {
      const duration = { method, route };
      const byStatus = new Map<number, { method: string; route: string; status: number }>();
      return {
        observe(status, tookMs) {
          let labels = byStatus.get(status);
          if (labels === undefined) {
            labels = { method, route, status };
            byStatus.set(status, labels);
          }
          requests.inc(labels);
          seconds.observe(duration, tookMs / 1000);
        },
      };
    },
    connect: (sources) => connectSources(registry, sources),
    text: () => registry.metrics(),
  };
}

function connectSources(registry: Registry, sources: GatewaySources): void {
  const registers = [registry];
  // prom-client has no counter that can be set: it is reset and raised at each look.
  const counter = (name: string, help: string, read: () => number): Counter =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  const gauge = (name: string, help: string, read: () => number): Gauge =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge('drover_gateway_requests_in_flight', 'Requests under way.', sources.inFlight);
  gauge(
    'drover_gateway_call_limit',
    'Calls of users that may be under way at once; it follows how long they take.',
    sources.callLimit,
  );
  registry.registerMetric(limitedCounter(sources));
  gauge(
    'drover_gateway_token_cache_entries',
    'Tokens remembered, known and unknown.',
    sources.tokenCacheEntries,
  );
  counter(
    'drover_gateway_token_cache_hits_total',
    'Requests whose token was remembered.',
    sources.tokenCacheHits,
  );
  counter(
    'drover_gateway_token_cache_misses_total',
    'Requests whose token had to be asked about.',
    sources.tokenCacheMisses,
  );
  edgeMetrics(registry, sources.edge);
}

function limitedCounter({ limited }: GatewaySources): Counter<'reason'> {
  return new Counter({
    name: 'drover_gateway_limited_total',
    help: 'Requests answered 429, by reason; most of overload are refused before they are routed.',
    labelNames: ['reason'],
    registers: [],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(limited())) this.inc({ reason }, count);
    },
  });
}
