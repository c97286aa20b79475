/** The gateway: HTTP in front of a Coordinator. It says who may call, translates, keeps nothing. */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import Fastify, { type FastifyHttpOptions, type FastifyInstance } from 'fastify';
import type { onRequestHookHandler } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Clock } from '../lib/clock.ts';
import { assert } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import type { TlsFiles } from '../lib/tls/files.ts';
import { tlsServerOptions } from '../lib/tls/options.ts';
import { AGENT_VERSION } from '../protocol/agent.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import { type AgentRouteOptions, agentRoutes } from './agents.ts';
import type { Accompany, App } from './app.ts';
import type { Authenticate } from './auth/authenticate.ts';
import { type Authorize, bearerOf, createAuthorize } from './auth/authorize.ts';
import { attemptHolder } from './auth/attemptHolder.ts';
import { guardRoute, type GuardOptions, type MayUse } from './auth/guard.ts';
import { TokenCache } from './auth/tokenCache.ts';
import { readJsonBodies } from './body.ts';
import { answerClientError } from './clientError.ts';
import { closeGently, trackUpgrades } from './close.ts';
import { Flights } from './flights.ts';
import { GATEWAY_LIMITS, type GatewayLimits } from './limits.ts';
import { listen, type ListenOptions } from './listen.ts';
import { refuseEarly } from './load/early.ts';
import { Load } from './load/load.ts';
import { Parking } from './load/parking.ts';
import { createGatewayMetrics } from './metrics.ts';
import { KnownPaths } from './notFound.ts';
import { ApiDescription, type UpgradeDescription } from './openapi.ts';
import { errorHandler } from './problem.ts';
import { requestIds, scopeRequests } from './requestId.ts';
import { referenceRoutes } from './reference/routes.ts';
import { budgetRoutes } from './rest/budgets.ts';
import { checkpointRoutes } from './rest/checkpoints.ts';
import { capsuleRoutes } from './rest/capsule.ts';
import { clusterRoutes } from './rest/cluster.ts';
import { healthRoutes } from './rest/health.ts';
import { jobRoutes } from './rest/jobs.ts';
import { policyRoutes } from './rest/policy.ts';
import { poolRoutes } from './rest/pools.ts';
import { queueRoutes } from './rest/queue.ts';
import { auditRoutes } from './rest/audit.ts';
import { tenantRoutes } from './rest/tenants.ts';
import { tokenRoutes } from './rest/tokens.ts';
import { workerRoutes } from './rest/workers.ts';
import { createEdge, type Edge, type EdgeOptions } from './security/edge.ts';
import type { Stamp } from './security/headers.ts';
import { validatorCompiler } from './validation.ts';

/** Takes over a connection that asked for another protocol; must answer or destroy the socket. */
export type Upgrade = (
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  authorize: Authorize,
) => void;

export interface GatewayOptions extends ListenOptions, EdgeOptions {
  tls?: TlsFiles;
  coordinator: Coordinator;
  /** Who holds a token; by default whoever the coordinator says. */
  authenticate?: Authenticate;
  clock: Clock;
  random: Random;
  log: Log;
  decodeLogFrames: AgentRouteOptions['decodeLogFrames'];
  limits?: Partial<GatewayLimits>;
  /** Who may come in now; shared with what is not a route here. With its defaults unless given. */
  load?: Load;
  /** Who is let in by the attempt it names; by default whoever the controller says runs it. */
  mayUse?: MayUse;
  /** Further routes; each names its access in `config`. Streams end in a `preClose` hook. */
  extraRoutes?: (app: App) => void;
  upgrade?: Upgrade;
  /** What `upgrade` answers, for the description; asked when that is. */
  upgrades?: () => readonly UpgradeDescription[];
  /** Asked before each submission; absent: nothing goes with it. */
  accompany?: Accompany | undefined;
}

export interface Gateway {
  url: string;
  /** Finishes what is under way, refuses what comes, and is done within `closeMs`. */
  close(): Promise<void>;
}

export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { clock, log } = options;
  const limits: GatewayLimits = { ...GATEWAY_LIMITS, ...options.limits };
  const edge = createEdge(options, log);
  const app = createApp(options, limits, edge);
  const metrics = createGatewayMetrics();
  const cache = new TokenCache({
    ...limits,
    clock,
    authenticate: options.authenticate ?? ((secret) => options.coordinator.authenticate(secret)),
  });
  const { load = new Load() } = options;
  load.callerOf = (request) => edge.admission.callerOf(request);
  const flights = new Flights({ ...limits, clock, log, metrics, load });
  metrics.connect({
    inFlight: () => flights.count,
    tokenCacheHits: () => cache.hits,
    tokenCacheMisses: () => cache.misses,
    tokenCacheEntries: () => cache.size,
    callLimit: () => load.overload.limit,
    limited: () => load.refusals,
    edge,
  });
  try {
    const mayUse = options.mayUse ?? attemptHolder(options.coordinator, clock);
    const description = new ApiDescription(AGENT_VERSION, options.upgrades ?? (() => []));
    edge.attach(app);
    guardEveryRoute(app, { cache, flights, load, mayUse }, { edge, description });
    await description.register(app);
    addRoutes(app, options, { limits, cache, metrics, edge });
    referenceRoutes(app, () => description.document(app));
    const parking = new Parking(clock);
    app.addHook('preClose', async () => parking.stop());
    refuseEarly(app.server, { load, cache, parking, requestId: requestIds(options.random) });
    const upgrade = edge.guardUpgrade(options.upgrade);
    const upgraded = trackUpgrades(app.server, flights, upgrade, createAuthorize(cache));
    const url = await listen(app, options);
    log.info({ url }, 'gateway listens');
    const close = (): Promise<void> => {
      edge.close();
      return closeGently({ app, flights, upgraded, clock, log, limits });
    };
    return { url, close };
  } catch (error) {
    flights.stop();
    await app.close();
    throw error;
  }
}

function createApp(options: GatewayOptions, limits: GatewayLimits, edge: Edge): App {
  const { random, log, accompany } = options;
  const answer = errorHandler(log);
  const http = {
    maxHeaderSize: limits.headerBytes,
    // Were it longer than requestTimeout, Node would take the one for the other.
    headersTimeout: Math.min(60_000, limits.requestReceiveMs),
    // So often Node looks for requests over their time; its own choice is half a minute.
    connectionsCheckingInterval: Math.min(30_000, limits.requestReceiveMs),
  };
  const server: FastifyHttpOptions<Server> = {
    logger: false,
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestReceiveMs,
    // Its own answer is not problem+json; the guard refuses instead.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    genReqId: requestIds(random),
    requestIdHeader: false,
    routerOptions: { maxParamLength: limits.pathParameterLength },
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, request, reply) => {
      edge.stamps.open(reply);
      answer(error, request, reply);
    },
    http,
  };
  const app = createServer(server, edge).withTypeProvider<ZodTypeProvider>();
  app.decorateRequest('principal');
  app.decorateRequest('bearer', '');
  app.decorateRequest('bodyHash', null);
  app.decorateRequest('accompany', function asked() {
    return accompany?.(this.principal, bearerOf(this));
  });
  app.setValidatorCompiler(validatorCompiler);
  // Answers are the Coordinator's own views: described by a schema, not checked again.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.setErrorHandler(answer);
  scopeRequests(app);
  readJsonBodies(app);
  return app;
}

function createServer(options: FastifyHttpOptions<Server>, { tls }: Edge): FastifyInstance {
  if (!tls) return Fastify(options);
  const { http, ...common } = options;
  // One is as good as the other for whoever uses it; the types differ in events of TLS only.
  return Fastify({ ...common, https: { ...http, ...tlsServerOptions(tls) } } as object);
}

/** Before any route is added: each gets its guard, its place in the description and in 405s. */
function guardEveryRoute(
  app: App,
  guards: GuardOptions,
  { edge: { stamps }, description }: { edge: Edge; description: ApiDescription },
): void {
  const paths = new KnownPaths();
  app.addHook('onRoute', (route) => {
    const { access, pace = 'unary', orAttempt = false } = route.config ?? {};
    assert(access, `the route ${route.url} does not say who may call it (config.access)`);
    assert(typeof route.method === 'string', `the route ${route.url} has one method`);
    const { method, url } = route;
    paths.add(method, url);
    const stamp = access === 'open' ? stamps.open : stamps.personal;
    const guard = guardRoute(guards, { method, url, access, pace, orAttempt });
    route.onRequest = stamped(stamp, guard);
    route.schema = description.describe(route);
  });
  const unknown = guards.flights.lane('any', 'unknown', 'unary');
  // Before its body is looked at, which might be refused for a reason that misleads.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    unknown.begin(request, reply);
    stamps.open(reply);
    done(paths.refusal(request, reply));
  });
}

/** One hook and not two: each costs every request a step. */
function stamped(stamp: Stamp, guard: onRequestHookHandler): onRequestHookHandler {
  return function stampAndGuard(request, reply, done) {
    stamp(reply);
    return guard.call(this, request, reply, done);
  };
}

interface RouteParts {
  edge: Edge;
  limits: GatewayLimits;
  cache: TokenCache;
  metrics: ReturnType<typeof createGatewayMetrics>;
}

function addRoutes(app: App, options: GatewayOptions, parts: RouteParts): void {
  const { coordinator, decodeLogFrames } = options;
  jobRoutes(app, coordinator, parts.limits);
  checkpointRoutes(app, coordinator);
  capsuleRoutes(app, coordinator);
  queueRoutes(app, coordinator);
  clusterRoutes(app, coordinator, parts.edge);
  workerRoutes(app, coordinator);
  poolRoutes(app, coordinator);
  tokenRoutes(app, coordinator, parts.cache);
  tenantRoutes(app, coordinator, parts.cache);
  auditRoutes(app, coordinator);
  policyRoutes(app, coordinator);
  budgetRoutes(app, coordinator);
  healthRoutes(app, coordinator, parts);
  agentRoutes(app, { coordinator, limits: parts.limits, decodeLogFrames });
  options.extraRoutes?.(app);
}
