/** Where a job would go, when and for how much, from what is free now; nothing is written. */
import type { PoolPreview } from '../core/explain/preview.ts';
import { freePool, neverFits, type PoolPolicy } from '../core/placement/admission.ts';
import { allows } from '../core/placement/constraints.ts';
import { costOf, hourMicros } from '../core/money.ts';
import type { Clock } from '../lib/clock.ts';
import type { JobSpec } from '../model/job.ts';
import type { PlanView } from '../protocol/budgets.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { PolicySource } from '../protocol/policy.ts';
import { inputHashesOf, requestOf } from '../state/requests.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import type { Planner } from './planner.ts';
import { underPolicy } from './policy.ts';

export interface PlanOptions {
  state: State;
  planner: Planner;
  settled: () => Promise<void>;
  committer: Committer;
  clock: Clock;
  pools: readonly PoolPolicy[];
  policy: PolicySource;
}

type Option = PlanView['options'][number];

export function createPlan(options: PlanOptions): Pick<Coordinator, 'plan'> {
  const { state, planner, settled, committer, clock, pools } = options;
  return {
    async plan(who, asked) {
      const [spec = asked] = underPolicy(options, who, [asked]);
      const request = requestOf({ tenant: who.tenant, owner: who.user, spec });
      const never = neverFits(spec, pools, state.pools);
      const joined = [...state.pools].filter((name) => !pools.some((pool) => pool.name === name));
      const usable = [...pools, ...joined.map(freePool)].filter(
        ({ name, terms }) =>
          (spec.pool === '' || spec.pool === name) &&
          allows(terms, request) &&
          neverFits({ ...spec, pool: name }, pools, state.pools) === null,
      );
      await settled();
      const previews = await planner.preview(request, clock.now(), inputHashesOf(spec) ?? []);
      const found = usable.map((pool) =>
        optionIn(
          pool,
          spec,
          previews.find((one) => one.pool === pool.name),
        ),
      );
      await committer.durable();
      if (never !== null) return { options: [], never };
      if (found.length === 0) return { options: [], never: 'no pool takes such work' };
      return { options: found.toSorted(soonestThenCheapest), never: null };
    },
  };
}

/** Of a pool that has workers the planner says when; the price is that of the whole job. */
function optionIn(pool: PoolPolicy, spec: JobSpec, preview: PoolPreview | undefined): Option {
  const { tasks, atOnce } = taskCounts(spec);
  const { device, cpuMillis } = spec.resources;
  const each = hourMicros(device ? device.count * device.share : 0, cpuMillis, pool);
  const costMicros = spec.timeLimitMs > 0 ? tasks * costOf(each, spec.timeLimitMs) : null;
  const price = { pool: pool.name, pricePerHourMicros: atOnce * each, costMicros };
  if (!preview) {
    return { ...price, startsAtMs: null, worker: null, reason: 'no worker of it has joined yet' };
  }
  const { startsAtMs, worker, reason } = preview;
  return { ...price, startsAtMs, worker, reason };
}

function taskCounts({ shape }: JobSpec): { tasks: number; atOnce: number } {
  if (shape.kind === 'single') return { tasks: 1, atOnce: 1 };
  if (shape.kind === 'gang') return { tasks: shape.size, atOnce: shape.size };
  const tasks = shape.indices.length;
  return { tasks, atOnce: shape.limit > 0 ? Math.min(shape.limit, tasks) : tasks };
}

function soonestThenCheapest(a: Option, b: Option): number {
  if ((a.startsAtMs === null) !== (b.startsAtMs === null)) return a.startsAtMs === null ? 1 : -1;
  return (
    (a.startsAtMs ?? 0) - (b.startsAtMs ?? 0) ||
    a.pricePerHourMicros - b.pricePerHourMicros ||
    (a.pool < b.pool ? -1 : 1)
  );
}
