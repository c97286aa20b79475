/** The controller of a server process, on its threads, built from the settings. */
import { join } from 'node:path';
import { freePool, type PoolPolicy } from '../core/placement/admission.ts';
import { poolPolicy } from '../core/placement/poolPolicy.ts';
import { DEFAULT_POLICY } from '../core/schedule/plan.ts';
import type { Log } from '../lib/log.ts';
import type { IdleRule } from '../model/jobParts.ts';
import type { Settings } from '../model/settings.ts';
import { packSpecs } from '../model/spec.ts';
import { COORDINATOR_CALLS, type Coordinator } from '../protocol/coordinator.ts';
import type { StoreSettings } from '../store/open.ts';
import type { Home } from './fleet.ts';
import { checkPolicyFile } from './policyFile.ts';
import { startThread } from './threads/start.ts';
import type { PackedCalls, StateThreadOptions } from './threads/stateParts.ts';

export interface RunningController {
  coordinator: Coordinator;
  /** Where agents of launched machines dial: known once a gateway listens. */
  tellHome(home: Home): Promise<void>;
  close(): Promise<void>;
}

interface StateCalls extends Coordinator, PackedCalls {
  boot(): Promise<void>;
  tellHome(home: Home): Promise<void>;
  close(): Promise<void>;
}

export async function startController(
  settings: Settings,
  tokens: { admin: string; join: string },
  log: Log,
): Promise<RunningController> {
  // Here it can be told to whoever starts it; the thread that uses it reads it again.
  await checkPolicyFile(settings.policy.file);
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
    fleet: settings.fleet,
    secrets: settings.secrets,
    exchange: settings.exchange,
    notify: settings.notify,
    policyFile: settings.policy.file,
    tokens,
    level: settings.logs.level,
  };
  const calls = ['boot', 'tellHome', 'close', 'submitPacked', ...COORDINATOR_CALLS] as const;
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
      // Tokens are for foreign coordinators: this one gets its own when it needs them.
      submit: (who, { specs, downstreamTokens: _tokens, ...request }) =>
        thread.calls.submitPacked(who, request, packSpecs(specs)),
    },
    tellHome: (home) => thread.calls.tellHome(home),
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

function poolPolicies({ fleet }: Settings): PoolPolicy[] {
  const pools = Object.entries(fleet.pools).map(([name, pool]) => poolPolicy(name, pool));
  if (!('default' in fleet.pools)) pools.unshift(freePool('default'));
  return pools;
}
