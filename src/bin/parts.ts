/**
 * The parts of a server process, built from the settings: the controller on its threads, its
 * gateway.
 */
import { join } from 'node:path';
import type { BlobStore } from '../blobs/contract.ts';
import { createBlobQuota } from '../blobs/quota.ts';
import { freePool, type PoolPolicy } from '../core/placement/admission.ts';
import { DEFAULT_POLICY } from '../core/schedule/plan.ts';
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
import { bearerOf, checkScope, type Authorize } from '../gateway/auth/authorize.ts';
import { recordAccesses } from '../gateway/tunnel/accesses.ts';
import { createExecRoute } from '../gateway/tunnel/exec.ts';
import { createTunnelHub } from '../gateway/tunnel/hub.ts';
import { createInsideRoute } from '../gateway/tunnel/inside.ts';
import { upgradeHandler, type UpgradeRoute } from '../gateway/tunnel/upgrades.ts';
import { systemClock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { systemRandom } from '../lib/random.ts';
import type { IdleRule } from '../model/jobParts.ts';
import type { Settings } from '../model/settings.ts';
import { packSpecs } from '../model/spec.ts';
import { COORDINATOR_CALLS, type Coordinator } from '../protocol/coordinator.ts';
import { decodeLogFrames } from '../protocol/logFrames.ts';
import type { StoreSettings } from '../store/open.ts';
import { startThread } from './threads/start.ts';
import type { PackedCalls, StateThreadOptions } from './threads/state.ts';

export interface RunningController {
  coordinator: Coordinator;
  close(): Promise<void>;
}

interface StateCalls extends Coordinator, PackedCalls {
  boot(): Promise<void>;
  close(): Promise<void>;
}

export async function startController(
  settings: Settings,
  tokens: { admin: string; join: string },
  log: Log,
): Promise<RunningController> {
  const options: StateThreadOptions = {
    store: storeSettings(settings),
    logs: {
      dir: join(settings.data.dir, 'logs'),
      metricsDir: join(settings.data.dir, 'metrics'),
      level: settings.logs.level,
      maxJobBytes: settings.logs.maxJobBytes,
      segmentBytes: settings.logs.segmentBytes,
    },
    controller: {
      clusterName: settings.cluster.name,
      timers: {
        workerLeaseMs: settings.leases.workerMs,
        attemptLeaseMs: settings.leases.attemptMs,
        killMarginMs: settings.leases.killMarginMs,
        longPollMs: settings.leases.longPollMs,
      },
      loops: settings.loops,
      pools: poolPolicies(settings),
      tell: settings.notify.defaults,
      schedule: { ...DEFAULT_POLICY, ...settings.schedule },
      idleDevices: idleDevices(settings),
    },
    secrets: settings.secrets,
    notify: settings.notify,
    tokens,
    level: settings.logs.level,
  };
  const calls = ['boot', 'close', 'submitPacked', ...COORDINATOR_CALLS] as const;
  const thread = startThread<StateCalls, StateThreadOptions>(
    'state',
    options,
    calls,
    (_, error) => {
      // What was not answered is decided by the rebuild of the next start.
      log.error({ err: error }, 'the controller has stopped: this process ends');
      process.exit(70);
    },
  );
  await thread.calls.boot();
  return {
    coordinator: {
      ...thread.calls,
      submit: (who, { specs, ...request }) =>
        thread.calls.submitPacked(who, request, packSpecs(specs)),
    },
    async close() {
      await thread.calls.close();
      await thread.end();
    },
  };
}

function storeSettings({ store, data }: Settings): StoreSettings {
  if (store.kind === 'postgres') return { kind: 'postgres', url: store.url };
  const { cacheBytes, checkpointPages } = store;
  return { kind: 'sqlite', file: join(data.dir, 'drover.db'), cacheBytes, checkpointPages };
}

function idleDevices({ idleDevices: { action, ...rule } }: Settings): IdleRule | null {
  return action === 'none' ? null : { ...rule, action };
}

function poolPolicies(settings: Settings): PoolPolicy[] {
  const { pools: configured } = settings.fleet;
  const pools: PoolPolicy[] = Object.entries(configured).map(
    ([name, { largestWorker: most, ...pool }]) => ({
      name,
      terms: {
        tenants: pool.tenants,
        interruptibleOnly: pool.interruptibleOnly,
        marketplace: pool.marketplace,
      },
      deviceHourMicros: Math.round(pool.pricePerDeviceHour * 1_000_000),
      cpuHourMicros: Math.round(pool.pricePerCpuHour * 1_000_000),
      largestWorker: most
        ? {
            cpuMillis: Math.round(most.cpus * 1000),
            memoryBytes: most.memoryBytes || Number.MAX_SAFE_INTEGER,
            devices: Array.from({ length: most.gpus }, (_, index) => ({
              index,
              kind: 'gpu' as const,
              model: most.gpuModel,
              memoryBytes: most.gpuMemoryBytes || Number.MAX_SAFE_INTEGER,
            })),
            portRange: [1, 65_535] as [number, number],
          }
        : null,
    }),
  );
  if (!('default' in configured)) pools.unshift(freePool('default'));
  return pools;
}

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
  const authenticate = (token: string) => coordinator.authenticate(token);
  const proxy: ProxyOptions = {
    hub: () => hub,
    authenticate,
    sessions: new ProxySessions(systemClock),
    secure: server.publicUrl.startsWith('https:'),
  };
  const gateway = await createGateway({
    ...common,
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
