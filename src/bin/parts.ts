/** The gateway of a server process, built from the settings. */
import type { BlobStore } from '../blobs/contract.ts';
import { createBlobQuota } from '../blobs/quota.ts';
import { createGateway } from '../gateway/gateway.ts';
import type { ProxyOptions } from '../gateway/proxy/access.ts';
import { proxyRoutes } from '../gateway/proxy/routes.ts';
import { ProxySessions } from '../gateway/proxy/sessions.ts';
import { createProxyUpgrade } from '../gateway/proxy/upgrade.ts';
import { GATEWAY_LIMITS } from '../gateway/limits.ts';
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
import type { Settings } from '../model/settings.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import { decodeLogFrames } from '../protocol/logFrames.ts';

export interface RunningGateway {
  url: string;
  close(): Promise<void>;
}

export async function startGateway(
  settings: Settings,
  { coordinator, blobs }: { coordinator: Coordinator; blobs: BlobStore },
  log: Log,
): Promise<RunningGateway> {
  const { server, limits } = settings;
  const { maxBlobBytes, tenantQuotaBytes } = settings.blobs;
  const common = { coordinator, clock: systemClock, random: systemRandom, log };
  // The hub must know the gateway's URL, which is known once it listens.
  const upgrades: UpgradeRoute[] = [];
  const authenticate = await openAuthenticate(settings.auth, common);
  const proxy: ProxyOptions = {
    hub: () => hub,
    authenticate,
    sessions: new ProxySessions(systemClock),
    secure: server.publicUrl.startsWith('https:'),
  };
  const gateway = await createGateway({
    ...common,
    authenticate,
    host: server.host,
    port: server.port,
    insecure: server.insecure,
    decodeLogFrames,
    limits: { bodyBytes: server.bodyLimitBytes, unaryTimeoutMs: server.unaryTimeoutMs },
    extraRoutes(app) {
      registerLogRoutes(app, {
        ...common,
        limits: { streamsPerTenant: limits.streamsPerTenant },
      });
      metricRoutes(app, { ...common, limits: { streamsPerTenant: limits.streamsPerTenant } });
      proxyRoutes(app, proxy);
      const quota = createBlobQuota(blobs, { tenantQuotaBytes, clock: systemClock });
      resultRoutes(app, { coordinator, store: blobs });
      dataRoutes(app, { coordinator, store: blobs, clock: systemClock });
      blobRoutes(app, { store: blobs, quota, maxBlobBytes, limits: GATEWAY_LIMITS });
      trainingRoutes(app, { ...common, store: blobs, quota, settings: settings.training, limits });
    },
    upgrade: upgradeHandler(upgrades, common),
    upgrades: () => upgrades,
  });
  const publicUrl = server.publicUrl || gateway.url;
  const hub = createTunnelHub({ ...common, publicUrl, audited: recordAccesses(coordinator) });
  const authorize: Authorize = async (request, scope) =>
    checkScope(await authenticate(bearerOf(request)), scope);
  const routes = { hub, authenticate, authorize, ...common };
  upgrades.push(hub.route, createExecRoute(routes), createInsideRoute(routes));
  upgrades.push(createProxyUpgrade(proxy));
  return {
    url: gateway.url,
    async close() {
      hub.close();
      await gateway.close();
    },
  };
}
