/** Where a job would go, when and for how much, from what is free now; nothing is written. */
import { freePool, neverFits, type PoolPolicy } from '../core/placement/admission.ts';
import type { Clock } from '../lib/clock.ts';
import type { JobSpec } from '../model/job.ts';
import type { WorkerTerms } from '../model/placement.ts';
import type { ResourceRequest } from '../model/resources.ts';
import type { PlanView } from '../protocol/budgets.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { LiveWorker } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';

export interface PlanOptions {
  state: State;
  committer: Committer;
  clock: Clock;
  pools: readonly PoolPolicy[];
}

type Option = PlanView['options'][number];
const HOUR_MS = 3_600_000;

export function createPlan(options: PlanOptions): Pick<Coordinator, 'plan'> {
  const { state, committer, clock, pools } = options;
  return {
    async plan(who, spec) {
      const nowMs = clock.now();
      const never = neverFits(spec, pools, state.pools);
      const joined = [...state.pools].filter((name) => !pools.some((pool) => pool.name === name));
      const usable = [...pools, ...joined.map(freePool)].filter(
        (pool) =>
          (spec.pool === '' || spec.pool === pool.name) &&
          takes(pool.terms, spec, who.tenant) &&
          neverFits({ ...spec, pool: pool.name }, pools, state.pools) === null,
      );
      const found = usable.map((pool) => optionIn(state, pool, spec, nowMs));
      await committer.durable();
      if (never !== null) return { options: [], never };
      if (found.length === 0) return { options: [], never: 'no pool takes such work' };
      return { options: found.toSorted(soonestThenCheapest), never: null };
    },
  };
}

function takes(terms: WorkerTerms, spec: JobSpec, tenant: string): boolean {
  const { interruptible, trust } = spec.placement;
  if (terms.tenants.length > 0 && !terms.tenants.includes(tenant)) return false;
  if (terms.interruptibleOnly && !interruptible) return false;
  return !(terms.marketplace && trust === 'restricted');
}

function optionIn(state: State, pool: PoolPolicy, spec: JobSpec, nowMs: number): Option {
  const workers = [...state.workers.values()].filter(({ worker }) => worker.pool === pool.name);
  const { tasks, atOnce } = taskCounts(spec);
  const each = priceOf(pool, spec.resources);
  const costMicros =
    spec.timeLimitMs > 0 ? Math.round((tasks * each * spec.timeLimitMs) / HOUR_MS) : null;
  const price = { pool: pool.name, pricePerHourMicros: atOnce * each, costMicros };
  const later = (reason: string): Option => ({ ...price, startsAtMs: null, worker: null, reason });
  if (workers.length === 0) return later('no worker of it has joined yet');
  // Whether all members fit at once is the planner's to find out.
  if (spec.shape.kind === 'gang') return later(`when all ${spec.shape.size} members fit together`);
  const free = workers.find((live) => hasRoom(live, spec.resources));
  if (!free) return later('when one of its workers has room');
  const { id } = free.worker;
  return { ...price, startsAtMs: nowMs, worker: id, reason: 'there is room now' };
}

function hasRoom({ worker, capacity }: LiveWorker, resources: ResourceRequest): boolean {
  if (worker.state !== 'ONLINE' || worker.draining) return false;
  return capacity.fit(resources).fits;
}

function taskCounts({ shape }: JobSpec): { tasks: number; atOnce: number } {
  if (shape.kind === 'single') return { tasks: 1, atOnce: 1 };
  if (shape.kind === 'gang') return { tasks: shape.size, atOnce: shape.size };
  const tasks = shape.indices.length;
  return { tasks, atOnce: shape.limit > 0 ? Math.min(shape.limit, tasks) : tasks };
}

/** An hour of one task, in millionths. */
function priceOf(pool: PoolPolicy, { cpuMillis, device }: ResourceRequest): number {
  const devices = device ? (device.count * device.share) / 1000 : 0;
  return Math.round(pool.deviceHourMicros * devices + (pool.cpuHourMicros * cpuMillis) / 1000);
}

function soonestThenCheapest(a: Option, b: Option): number {
  if ((a.startsAtMs === null) !== (b.startsAtMs === null)) return a.startsAtMs === null ? 1 : -1;
  return (
    (a.startsAtMs ?? 0) - (b.startsAtMs ?? 0) ||
    a.pricePerHourMicros - b.pricePerHourMicros ||
    (a.pool < b.pool ? -1 : 1)
  );
}
