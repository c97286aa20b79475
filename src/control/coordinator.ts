/** The Coordinator over a controller's parts: each answers its own kind of call. */
import type { Explanation } from '../core/explain.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import { AGENT_VERSION } from '../protocol/agent.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import { NO_POLICY } from '../protocol/policy.ts';
import type { State } from '../state/state.ts';
import type { Agents } from './agents.ts';
import type { CheckpointAsks } from './checkpointAsks.ts';
import type { Committer } from './committer.ts';
import type { ControllerOptions } from './controller.ts';
import type { Jobs } from './jobs.ts';
import type { Loop } from './loop.ts';
import type { ControlMetrics } from './metrics.ts';
import type { Mutate } from './mutate.ts';
import type { PoolLoops } from './pools/loops.ts';
import type { Sessions } from './sessions.ts';
import type { Tunnels } from './tunnels.ts';
import { createAttemptFiles } from './attemptFiles.ts';
import { createAttemptSecrets } from './attemptSecrets.ts';
import { createAttemptTokens } from './attemptTokens.ts';
import { createCheckpointCalls } from './checkpointAsks.ts';
import { createConnectorCalls } from './connectors.ts';
import { createAudit } from './audit.ts';
import { createBudgets } from './budgets.ts';
import { createDataSets } from './dataSets.ts';
import { createFleet } from './fleet.ts';
import { createLogAccess } from './logAccess.ts';
import { checkScopes } from './scopes.ts';
import { createTunnelCalls } from './tunnels.ts';
import { readiness } from './readiness.ts';
import { createReceipts } from './receipts.ts';
import { createPlan } from './plan.ts';
import { createPools } from './pools.ts';
import { createTenants } from './tenants.ts';
import { createTokens } from './tokens.ts';
import { createWhy } from './why.ts';

export interface ControllerParts {
  core: {
    state: State;
    mutate: Mutate;
    committer: Committer;
    sessions: Sessions;
    clock: Clock;
    random: Random;
    checkpointAsks: CheckpointAsks;
  };
  jobs: Jobs;
  agents: Agents;
  tunnels: Tunnels;
  loops: readonly Loop[];
  metrics: ControlMetrics;
  reasons: ReadonlyMap<string, Explanation>;
  /** Resolves when the planner has seen all there is now. */
  settled: () => Promise<void>;
  poolLoops: PoolLoops;
}

export function createCoordinator(options: ControllerOptions, parts: ControllerParts): Coordinator {
  const { history, logs, jobMetrics, planner, settings, policy = NO_POLICY } = options;
  const { core, jobs, agents, tunnels, loops, metrics, reasons, settled, poolLoops } = parts;
  const { state, sessions, committer, clock } = core;
  const { longPollMs } = settings.timers;
  const cluster = {
    name: settings.clusterName,
    version: AGENT_VERSION,
    startedAtMs: clock.now(),
    store: options.storeKind,
    attemptLeaseMs: settings.timers.attemptLeaseMs,
  };
  return checkScopes({
    ...createFleet({ ...core, cluster }),
    ...createPools({ ...core, history, pools: settings.pools, loops: poolLoops }),
    ...createTokens(core),
    ...createTenants({ ...core, policy }),
    policy: async () => policy.view(),
    ...jobs,
    ...createLogAccess({ state, history, logs, jobMetrics, jobs, agents, clock }),
    ...createWhy({ state, planner, settled, clock, reasons, getJob: jobs.getJob, poolLoops }),
    ...createReceipts({ history, clock, getJob: jobs.getJob }),
    ...createPlan({ state, planner, settled, committer, clock, pools: settings.pools, policy }),
    ...createBudgets({ ...core, history }),
    ...createDataSets({ ...core, history }),
    ...createAudit({ ...core, history }),
    ...createTunnelCalls({ state, jobs, tunnels, sessions }),
    ...createAttemptFiles({ ...core, agents }),
    ...createAttemptSecrets({ ...core, agents, sources: options.secrets ?? [] }),
    ...createAttemptTokens({ ...core, agents, minter: options.minter, log: options.log }),
    ...createCheckpointCalls({ ...core, getJob: jobs.getJob }),
    ...createConnectorCalls({
      ...{ state, clock, longPollMs, sites: options.connectors, pools: settings.pools },
      look: (pool) => poolLoops.look(pool),
    }),
    join: (token, request) => agents.join(token, request),
    sync: (token, request) => agents.sync(token, request),
    readiness: () => readiness(loops, history),
    metrics: () => metrics.render(),
  });
}
