/** The gateway of a server process, built from the settings. */
import type { BlobStore } from '../blobs/contract.ts';
import { createBlobQuota } from '../blobs/quota.ts';
import { createGateway } from '../gateway/gateway.ts';
import type { ProxyOptions } from '../gateway/proxy/access.ts';
import { proxyRoutes } from '../gateway/proxy/routes.ts';
import { ProxySessions } from '../gateway/proxy/sessions.ts';
import { createProxyUpgrade } from '../gateway/proxy/upgrade.ts';
import { GATEWAY_LIMITS } from '../gateway/limits.ts';
import { limitSubmits, Load } from '../gateway/load/load.ts';
import { limitUpgrade } from '../gateway/load/upgrade.ts';
import { installRoutes } from '../gateway/install/routes.ts';
import { blobRoutes } from '../gateway/rest/blobs.ts';
import { dataRoutes } from '../gateway/rest/data.ts';
import { resultRoutes } from '../gateway/rest/results.ts';
import { metricRoutes } from '../gateway/rest/metrics.ts';
import { registerLogRoutes } from '../gateway/rest/logs.ts';
import { trainingRoutes } from '../gateway/training/routes.ts';
import { openAuthenticate } from '../gateway/auth/authenticate.ts';
import { bearerOf, checkScope, type Authorize } from '../gateway/auth/authorize.ts';
import { recordAccesses } from '../gateway/tunnel/accesses.ts';
import { createExecRoute } from '../gateway/tunnel/exec.ts';
import { createTunnelHub } from '../gateway/tunnel/hub.ts';
import { createInsideRoute } from '../gateway/tunnel/inside.ts';
import { upgradeHandler, type UpgradeRoute } from '../gateway/tunnel/upgrades.ts';
import { systemClock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { systemRandom } from '../lib/random.ts';
import { httpExposures } from '../model/listenerSettings.ts';
import type { Settings } from '../model/settings.ts';
import type { Coordinator, LogFollower } from '../protocol/coordinator.ts';
import { decodeLogFrames } from '../protocol/logFrames.ts';
import { exchangeOf } from './exchange.ts';
import { installOptions } from './install.ts';
import { listenerParts } from './tls.ts';

export interface RunningGateway {
  url: string;
  close(): Promise<void>;
}

interface GatewayParts {
  coordinator: Coordinator & Partial<LogFollower>;
  blobs: BlobStore;
  /** What else of this process is readable on the network. */
  exposures?: string[];
}

export async function startGateway(
  settings: Settings,
  { blobs, exposures = [], ...given }: GatewayParts,
  log: Log,
): Promise<RunningGateway> {
  const { server } = settings;
  const load = new Load(settings.limits);
  const coordinator = limitSubmits(given.coordinator, load);
  const { maxBlobBytes, tenantQuotaBytes } = settings.blobs;
  const common = { coordinator, clock: systemClock, random: systemRandom, log };
  // The hub must know the gateway's URL, which is known once it listens.
  const upgrades: UpgradeRoute[] = [];
  const authenticate = await openAuthenticate(settings.auth, common);
  const proxy: ProxyOptions = {
    hub: () => hub,
    authenticate,
    sessions: new ProxySessions(systemClock),
    secure: server.publicUrl.startsWith('https:') || server.certFile !== '',
  };
  const open = [...httpExposures(settings), ...exposures];
  const listener = listenerParts(settings, open, log);
  const gateway = await createGateway({
    ...common,
    authenticate,
    ...listener,
    decodeLogFrames,
    accompany: exchangeOf(settings.exchange, log)?.accompany,
    load,
    limits: { bodyBytes: server.bodyLimitBytes, unaryTimeoutMs: server.unaryTimeoutMs },
    extraRoutes(app) {
      const follows = { streamMs: server.streamTimeoutMs };
      registerLogRoutes(app, { ...common, limits: follows });
      metricRoutes(app, { ...common, limits: follows });
      installRoutes(app, installOptions(settings));
      proxyRoutes(app, proxy);
      const quota = createBlobQuota(blobs, { tenantQuotaBytes, clock: systemClock });
      resultRoutes(app, { coordinator, store: blobs });
      dataRoutes(app, { coordinator, store: blobs, clock: systemClock });
      blobRoutes(app, { store: blobs, quota, maxBlobBytes, limits: GATEWAY_LIMITS });
      const training = { store: blobs, quota, settings: settings.training, limits: follows };
      trainingRoutes(app, { ...common, ...training });
    },
    upgrade: upgradeHandler(upgrades, common),
    upgrades: () => upgrades,
  });
  const publicUrl = server.publicUrl || gateway.url;
  const audited = recordAccesses(coordinator);
  const holdStream: Load['holdStream'] = (who) => load.holdStream(who);
  const hub = createTunnelHub({ ...common, publicUrl, audited, holdStream });
  const authorize: Authorize = async (request, scope) =>
    checkScope(await authenticate(bearerOf(request)), scope);
  const routes = { hub, authenticate, authorize, ...common };
  const ofUsers = [createExecRoute(routes), createInsideRoute(routes), createProxyUpgrade(proxy)];
  upgrades.push(hub.route, ...ofUsers.map((route) => limitUpgrade(route, load)));
  return {
    url: gateway.url,
    async close() {
      hub.close();
      await gateway.close();
      listener.tls?.close();
    },
  };
}
