/** The capacity loop: what fits nowhere becomes intents, what idles is given back. */
import { planCapacity } from '../../core/capacity/plan.ts';
import type { CapacityPlan, Demand, Launch, Release } from '../../core/capacity/capacity.ts';
import { runAsOf } from '../../core/capacity/capacity.ts';
import { isComing } from '../../core/lifecycle/instance.ts';
import type { Price } from '../../core/money.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { batchOf } from '../../model/instance.ts';
import { instancesOf } from '../../state/instances.ts';
import type { State } from '../../state/state.ts';
import type { Mutate } from '../mutate.ts';
import type { Planner } from '../planner.ts';
import { capacityPool } from './capacityPool.ts';
import type { ManagedPool, PoolStatus } from './pool.ts';
import { isEmpty, stopAll } from './wanted.ts';

export interface CapacityOptions {
  pools: readonly { pool: ManagedPool; status: PoolStatus }[];
  state: State;
  planner: Planner;
  /** The planner has heard of all that happened until now. */
  settled: () => Promise<void>;
  mutate: Mutate;
  clock: Clock;
  log: Log;
  /** A pool has something to launch or to end. */
  hintPool: (pool: string) => void;
  hint: () => void;
  told: CapacityTold;
}

/** What the last plan said of classes that wait, for those who ask why. */
export class CapacityTold {
  #plan: Pick<CapacityPlan, 'coming' | 'unmet'> = { coming: [], unmet: [] };

  set({ coming, unmet }: CapacityPlan): void {
    this.#plan = { coming, unmet };
  }

  coming(classKey: string): CapacityPlan['coming'][number] | undefined {
    return this.#plan.coming.find((each) => each.classKey === classKey);
  }

  unmet(classKey: string): CapacityPlan['unmet'][number] | undefined {
    return this.#plan.unmet.find((each) => each.classKey === classKey);
  }
}

export function createCapacityStep(options: CapacityOptions): () => Promise<void> {
  const { pools, state, planner, mutate, clock, log } = options;
  const prices = new Map<string, Price>(pools.map(({ pool }) => [pool.name, pool.policy]));
  let wakeAt: Timer | null = null;

  return async () => {
    await options.settled();
    const demands = (await planner.demand(prices)).map((demand) => named(state, demand));
    const nowMs = clock.now();
    for (const { status } of pools) status.follow(clock);
    for (const { pool, status } of pools) noticeIdle(state, pool.name, status, nowMs);
    const views = pools.map(({ pool, status }) => capacityPool(state, pool, status, nowMs));
    const plan = planCapacity(views, demands, nowMs);
    options.told.set(plan);
    for (const release of plan.releases) giveBack(release);
    for (const launch of plan.launches) intend(launch);
    for (const { status } of pools) noticeUnwanted(status, plan, nowMs);
    wakeAt?.cancel();
    if (plan.nextAtMs !== null) {
      wakeAt = clock.setTimer(Math.max(100, plan.nextAtMs - clock.now()), options.hint);
    }
  };

  function intend(launch: Launch): void {
    const found = pools.find(({ pool }) => pool.name === launch.pool);
    if (!found) return;
    const { pool, status } = found;
    const result = mutate({
      kind: 'intend',
      ...{ pool: pool.name, max: pool.settings.max, count: launch.count },
      ...{ workers: launch.workers, resources: launch.brings, tasks: launch.tasks },
      runAs: launch.runAs ? runAsOf(launch.runAs) : '',
      priceHourMicros: Math.round(pool.settings.pricePerInstanceHour * 1_000_000),
      timeLimitMs: launch.timeLimitMs,
      reason: launch.reason,
    });
    if (result.kind !== 'intended') return;
    const [first] = result.ids;
    if (!first) return;
    log.info({ pool: pool.name, instances: result.ids, reason: launch.reason }, 'intended');
    status.wanted.set(batchOf(first), { launch, ids: result.ids });
    options.hintPool(pool.name);
  }

  function giveBack({ pool, instance, reason, unpaid }: Release): void {
    const live = state.machines.instances.get(instance);
    if (!live) return;
    const at = live.instance.state;
    log.info({ pool, instance, reason }, 'given back');
    if (at === 'JOINED') {
      mutate({ kind: 'drain-instance', instance, reason });
      if (unpaid) stopAll(state, mutate, instance, reason);
    }
    if (isComing(at)) {
      mutate({ kind: 'destroy-instance', instance, failure: null, reason, by: '', tenant: '' });
    }
    options.hintPool(pool);
  }
}

function named(state: State, demand: Demand): Demand {
  const [first] = demand.tasks;
  return { ...demand, name: (first && state.jobs.get(first.job)?.job.spec.name) ?? '' };
}

function noticeIdle(state: State, pool: string, status: PoolStatus, nowMs: number): void {
  for (const live of instancesOf(state, pool)) {
    const { id, state: at } = live.instance;
    if (at !== 'JOINED') {
      if (!isComing(at)) status.idleSince.delete(id);
      continue;
    }
    if (!isEmpty(state, live)) status.idleSince.delete(id);
    else if (!status.idleSince.has(id) || !status.joined.has(id)) status.idleSince.set(id, nowMs);
  }
}

/** Of those that come: since when each plan has found nothing that waits for them. */
function noticeUnwanted(status: PoolStatus, { unwanted }: CapacityPlan, nowMs: number): void {
  const named = new Set(unwanted);
  for (const id of status.idleSince.keys()) {
    if (!status.joined.has(id) && !named.has(id)) status.idleSince.delete(id);
  }
  for (const id of unwanted) {
    if (!status.idleSince.has(id)) status.idleSince.set(id, nowMs);
  }
}
