/** The controller: live state, one writer, loops and the Coordinator over them, wired by hand. */
import type { Explanation } from '../core/explain.ts';
import type { PoolPolicy } from '../core/placement/admission.ts';
import type { SchedulePolicy } from '../core/schedule/plan.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import type { IdleRule } from '../model/jobParts.ts';
import { SCOPES } from '../model/token.ts';
import type { Timers } from '../protocol/agent.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { Minter } from '../exchange/mint.ts';
import { NO_POLICY, type PolicySource } from '../protocol/policy.ts';
import type { SecretSource } from '../secrets/contract.ts';
import type { Snapshot } from '../state/live.ts';
import type { TellDefaults } from '../state/notices.ts';
import { State } from '../state/state.ts';
import type { History, Writer } from '../store/contract.ts';
import { createAgents } from './agents.ts';
import { CheckpointAsks } from './checkpointAsks.ts';
import { createChargeStep } from './charges.ts';
import { createCommitter } from './committer.ts';
import type { ConnectorSites } from './connectors.ts';
import { createCoordinator } from './coordinator.ts';
import { createDeadlineStep } from './deadlines.ts';
import { createJobs } from './jobs.ts';
import { createLeaseStep } from './leases.ts';
import type { LogStore } from './logs.ts';
import { startLoop, type Loop } from './loop.ts';
import { createMetrics } from './metrics.ts';
import { createMutate, type Mutate } from './mutate.ts';
import { createNoticeLoop, type Channels } from './notices.ts';
import type { Planner } from './planner.ts';
import type { Launching } from './pools/launching.ts';
import { startPoolLoops } from './pools/loops.ts';
import type { ManagedPool } from './pools/pool.ts';
import { receiptOfEnded } from './receipts.ts';
import { createScheduleStep } from './schedule.ts';
import { hashSecret } from './secrets.ts';
import { Sessions } from './sessions.ts';
import { Tunnels } from './tunnels.ts';

type LoopPeriod =
  | 'scheduleMs'
  | 'leasesMs'
  | 'deadlinesMs'
  | 'chargesMs'
  | 'noticesMs'
  | 'capacityMs';

export interface ControllerSettings {
  clusterName: string;
  timers: Timers;
  loops: Record<LoopPeriod, number>;
  pools: readonly PoolPolicy[];
  schedule: SchedulePolicy;
  /** For jobs that have no rule of their own; absent or null: none. */
  idleDevices?: IdleRule | null;
  /** Whom jobs that name nobody tell; absent: nobody. */
  tell?: TellDefaults;
}

export interface ControllerOptions {
  snapshot: Snapshot;
  storeKind: 'sqlite' | 'postgres';
  writer: Writer;
  history: History;
  planner: Planner;
  logs: LogStore;
  /** What is measured of jobs; absent: it is not kept. */
  jobMetrics?: LogStore;
  /** Where jobs' secrets come from; absent: from nowhere. */
  secrets?: readonly SecretSource[];
  /** Mints tokens of other services for attempts; absent: there are none. */
  minter?: Minter | undefined;
  /** Where people can be told; absent: nowhere. */
  channels?: Channels;
  /** What the site fills in and refuses; absent: nothing. */
  policy?: PolicySource;
  /** Pools that bring machines by themselves; absent: none do. */
  fleet?: { pools: readonly ManagedPool[]; launching: Launching };
  /** Sites that are reached by who stands there; absent: none is. */
  connectors?: ConnectorSites;
  clock: Clock;
  random: Random;
  log: Log;
  settings: ControllerSettings;
  /** The process must end: a commit failed or its outcome is unknown. */
  onFatal: (error: unknown) => void;
}

export interface Controller {
  coordinator: Coordinator;
  state: State;
  mutate: Mutate;
  durable(): Promise<void>;
  /** Makes sure that tokens with these secrets exist: the first user's, and a local agent's. */
  ensureTokens(secrets: { admin: string; join: string }): Promise<void>;
  close(): Promise<void>;
}

const DEFAULT_TENANT = 'default';

export function createController(options: ControllerOptions): Controller {
  const { clock, random, log, settings, history, planner } = options;
  const { halfLifeMs } = settings.schedule;
  const { pools, tell = {} } = settings;
  const state = new State(options.snapshot, { pools, halfLifeMs, tell });
  const sessions = new Sessions(clock);
  const tunnels = new Tunnels(clock, random);
  const reasons = new Map<string, Explanation>();
  const committer = createCommitter({
    state,
    writer: options.writer,
    clock,
    onCommit(changes) {
      jobs.wakeWaiters(changes.endings.keys());
      const wake = [...state.wake];
      state.wake.clear();
      sessions.wakeSoon(wake);
      if (changes.notices.size > 0) noticeLoop.hint();
    },
    onFatal: options.onFatal,
  });
  const hintSchedule = (): void => scheduleLoop.hint();
  const mutate = createMutate(state, clock, committer, hintSchedule);
  const { channels = new Map(), policy = NO_POLICY } = options;
  const common = { state, mutate, committer, history, clock, channels };
  const jobs = createJobs({ ...common, reasons, pools, policy });
  const checkpointAsks = new CheckpointAsks();
  const core = { state, mutate, committer, sessions, clock, random, checkpointAsks };
  const { timers, idleDevices = null } = settings;
  const { fleet } = options;
  const joinSecrets = fleet?.launching.joinSecrets;
  const attributesOf = (pool: string): Record<string, string> =>
    fleet?.pools.find(({ name }) => name === pool)?.settings.attributes ?? {};
  const machines = { joinSecrets, attributesOf };
  const agents = createAgents({ ...core, ...machines, tunnels, timers, idleDevices });
  const loops: Loop[] = [];
  const metrics = createMetrics({ ...core, loops: () => loops });
  const loop = (name: string, periodMs: number, step: () => Promise<void>): Loop => {
    const started = startLoop({ name, periodMs, clock, log, step });
    loops.push(started);
    return started;
  };
  const placed: typeof metrics.placed = (...counts) => metrics.placed(...counts);
  const schedule = { ...core, reasons, planner, hint: hintSchedule, placed };
  const scheduleLoop = loop('schedule', settings.loops.scheduleMs, createScheduleStep(schedule));
  const settled = (): Promise<void> => scheduleLoop.settled();
  loop('leases', settings.loops.leasesMs, createLeaseStep(leasesOf(options, core, tunnels)));
  loop('deadlines', settings.loops.deadlinesMs, createDeadlineStep(state, mutate, clock, reasons));
  loop('charges', settings.loops.chargesMs, createChargeStep(state, mutate, clock, hintSchedule));
  const notices = createNoticeLoop({
    ...{ ...common, log, cluster: settings.clusterName, hint: () => noticeLoop.hint() },
    receipt: (tenant, job) => receiptOfEnded(history, tenant, job),
  });
  const noticeLoop = loop('notices', settings.loops.noticesMs, () => notices.step());
  const poolLoops = startPoolLoops({
    ...{ ...core, planner, settled, log, startLoop: loop },
    ...(fleet ?? { pools: [], launching: null }),
    capacityMs: settings.loops.capacityMs,
  });
  scheduleLoop.hint();
  // Wakes noted during the rebuild are for calls that cannot be parked yet.
  state.wake.clear();

  const parts = { core, jobs, agents, tunnels, loops, metrics, reasons, settled, poolLoops };
  const coordinator = createCoordinator(options, parts);

  return {
    coordinator,
    state,
    mutate,
    durable: () => committer.durable(),
    async ensureTokens({ admin, join }) {
      ensureToken(state, mutate, 'user', 'admin', admin);
      ensureToken(state, mutate, 'join', 'local agent', join);
      await committer.durable();
    },
    async close() {
      for (const one of loops.toReversed()) await one.close();
      await notices.close();
      sessions.releaseAll();
      await committer.durable();
    },
  };
}

function leasesOf(
  { settings }: ControllerOptions,
  core: { state: State; mutate: Mutate; sessions: Sessions; clock: Clock },
  tunnels: Tunnels,
): Parameters<typeof createLeaseStep>[0] {
  return {
    ...core,
    settings: settings.timers,
    lastContact: (worker) => core.sessions.lastContactBootMs(worker),
    lost(worker) {
      core.sessions.forget(worker);
      tunnels.forget(worker);
    },
  };
}

function ensureToken(
  state: State,
  mutate: Mutate,
  kind: 'user' | 'join',
  name: string,
  secret: string,
): void {
  const hash = hashSecret(secret);
  if (state.tokensByHash.has(hash)) return;
  mutate({
    kind: 'create-token',
    by: 'the first start',
    token: {
      kind,
      name,
      hash,
      tenant: DEFAULT_TENANT,
      user: 'admin',
      scopes: kind === 'user' ? [...SCOPES] : [],
      pool: 'default',
      maxLiveWorkers: 0,
      expiresAtMs: null,
    },
  });
}
