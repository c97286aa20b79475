/** Where a job would go, when and for how much, from what is free now; nothing is written. */
import { freePool, neverFits, type PoolPolicy } from '../core/placement/admission.ts';
import { allows } from '../core/placement/constraints.ts';
import type { PlacementRequest } from '../core/placement/request.ts';
import { costOf, priceOf } from '../core/money.ts';
import type { Clock } from '../lib/clock.ts';
import type { JobSpec } from '../model/job.ts';
import type { ResourceRequest } from '../model/resources.ts';
import type { PlanView } from '../protocol/budgets.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import { requestOf } from '../state/requests.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import { rejection } from './whyWorkers.ts';

export interface PlanOptions {
  state: State;
  committer: Committer;
  clock: Clock;
  pools: readonly PoolPolicy[];
}

type Option = PlanView['options'][number];

export function createPlan(options: PlanOptions): Pick<Coordinator, 'plan'> {
  const { state, committer, pools } = options;
  return {
    async plan(who, spec) {
      const request = requestOf({ tenant: who.tenant, owner: who.user, spec });
      const never = neverFits(spec, pools, state.pools);
      const joined = [...state.pools].filter((name) => !pools.some((pool) => pool.name === name));
      const usable = [...pools, ...joined.map(freePool)].filter(
        ({ name, terms }) =>
          (spec.pool === '' || spec.pool === name) &&
          allows(terms, request) &&
          neverFits({ ...spec, pool: name }, pools, state.pools) === null,
      );
      const found = usable.map((pool) => optionIn(options, pool, request, spec));
      await committer.durable();
      if (never !== null) return { options: [], never };
      if (found.length === 0) return { options: [], never: 'no pool takes such work' };
      return { options: found.toSorted(soonestThenCheapest), never: null };
    },
  };
}

function optionIn(
  { state, clock }: PlanOptions,
  pool: PoolPolicy,
  request: PlacementRequest,
  spec: JobSpec,
): Option {
  const { tasks, atOnce } = taskCounts(spec);
  const each = hourMicros(spec.resources, pool);
  const costMicros = spec.timeLimitMs > 0 ? tasks * costOf(each, spec.timeLimitMs) : null;
  const price = { pool: pool.name, pricePerHourMicros: atOnce * each, costMicros };
  const later = (reason: string): Option => ({ ...price, startsAtMs: null, worker: null, reason });
  const workers = [...state.workers.values()].filter(({ worker }) => worker.pool === pool.name);
  if (workers.length === 0) return later('no worker of it has joined yet');
  // Whether all members fit at once is the planner's to find out.
  if (spec.shape.kind === 'gang') return later(`when all ${spec.shape.size} members fit together`);
  const free = workers.find((live) => rejection(state, live, request) === null);
  if (!free) return later('when one of its workers has room');
  const { id } = free.worker;
  return { ...price, startsAtMs: clock.now(), worker: id, reason: 'there is room now' };
}

function taskCounts({ shape }: JobSpec): { tasks: number; atOnce: number } {
  if (shape.kind === 'single') return { tasks: 1, atOnce: 1 };
  if (shape.kind === 'gang') return { tasks: shape.size, atOnce: shape.size };
  const tasks = shape.indices.length;
  return { tasks, atOnce: shape.limit > 0 ? Math.min(shape.limit, tasks) : tasks };
}

/** Of one task, in millionths. */
function hourMicros({ cpuMillis, device }: ResourceRequest, pool: PoolPolicy): number {
  const devices = Array.from({ length: device?.count ?? 0 }, (_, at) => at);
  return priceOf({ devices, share: device?.share ?? 0, cpuMillis }, pool);
}

function soonestThenCheapest(a: Option, b: Option): number {
  if ((a.startsAtMs === null) !== (b.startsAtMs === null)) return a.startsAtMs === null ? 1 : -1;
  return (
    (a.startsAtMs ?? 0) - (b.startsAtMs ?? 0) ||
    a.pricePerHourMicros - b.pricePerHourMicros ||
    (a.pool < b.pool ? -1 : 1)
  );
}
