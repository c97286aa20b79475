/** For tests: pools, instances and demands with everything filled in, and plans carried out. */
import type { InstanceId, JobId, TaskId } from '../../model/ids.ts';
import { OPEN_TERMS, type PlacementSpec } from '../../model/placement.ts';
import type { WorkerResources } from '../../model/resources.ts';
import type { PlacementRequest } from '../placement/request.ts';
import { gpus, testRequest, GIB } from '../placement/testFleet.ts';
import { FRESH_BACKOFF } from './backoff.ts';
import { runAsOf, type CapacityInstance, type CapacityPlan } from './capacity.ts';
import type { CapacityPool, Demand, Launch, SpendLeft } from './capacity.ts';

export const NOW = 1_000_000_000_000;
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const MICROS = 1_000_000;

/** 8 cores, 64 GiB, and so many H100s. */
export function machine(devices = 0, more: Partial<WorkerResources> = {}): WorkerResources {
  return {
    cpuMillis: 8000,
    memoryBytes: 64 * GIB,
    devices: gpus(devices),
    portRange: [100, 119],
    ...more,
  };
}

export function testPool(name: string, more: Partial<CapacityPool> = {}): CapacityPool {
  return {
    name,
    mode: 'agents',
    min: 0,
    max: 10,
    maxPending: 10,
    cooldownMs: 10_000,
    idleTimeoutMs: 10 * MINUTE,
    size: machine(),
    largest: null,
    attributes: {},
    network: '',
    terms: OPEN_TERMS,
    batches: true,
    gangs: true,
    longestMs: 0,
    assumedJobMs: HOUR,
    quantumMicros: 0,
    quantumMs: MINUTE,
    spend: null,
    perUser: false,
    deviceHourMicros: 0,
    cpuHourMicros: 0,
    instances: [],
    backoff: FRESH_BACKOFF,
    ...more,
  };
}

export function testInstance(id: string, more: Partial<CapacityInstance> = {}): CapacityInstance {
  return {
    id: id as InstanceId,
    state: 'coming',
    queued: true,
    workers: 1,
    resources: machine(),
    tasks: [],
    classKey: '',
    waiting: more.tasks?.length ?? 0,
    runAs: '',
    idleSinceMs: null,
    timeLimitMs: 0,
    endsAtMs: null,
    paidUntilMs: null,
    ...more,
  };
}

export function idle(id: string, idleMs: number, more: Partial<CapacityInstance> = {}) {
  return testInstance(id, { state: 'joined', idleSinceMs: NOW - idleMs, ...more });
}

export function busy(id: string, more: Partial<CapacityInstance> = {}): CapacityInstance {
  return testInstance(id, { state: 'joined', ...more });
}

let demands = 0;

export function testDemand(
  waiting: number,
  request: Partial<PlacementRequest> = {},
  placement: Partial<PlacementSpec> = {},
  more: Partial<Demand> = {},
): Demand {
  const name = more.name ?? `job${demands++}`;
  return {
    request: { ...testRequest(placement, request), key: request.key ?? name },
    waiting,
    tasks: Array.from({ length: waiting }, (_, rank) => ({
      task: `${name}.${rank}` as TaskId,
      job: name as JobId,
    })),
    name,
    sinceMs: NOW - MINUTE,
    affordable: new Map(),
    ...more,
  };
}

export function spendLeft(left: number, limit = 12, more: Partial<SpendLeft> = {}): SpendLeft {
  return {
    leftMicros: left * MICROS,
    limitMicros: limit * MICROS,
    period: 'day',
    renewsAtMs: NOW + 5 * HOUR,
    ...more,
  };
}

/** The pools as they are when the plan's launches are under way and what it gave up is gone. */
export function carriedOut(
  pools: readonly CapacityPool[],
  plan: CapacityPlan,
  round = 0,
): CapacityPool[] {
  const released = new Set(plan.releases.map(({ instance }) => instance));
  const launched = new Map<string, CapacityInstance[]>();
  let minted = 0;
  for (const launch of plan.launches) {
    for (let place = 0; place < launch.count; place++) {
      const id = `z${round}${String(minted++).padStart(6, '0')}`;
      const all = launched.get(launch.pool) ?? [];
      launched.set(launch.pool, [...all, instanceOf(id, launch, place)]);
    }
  }
  return pools.map((pool) => ({
    ...pool,
    instances: [
      ...pool.instances.filter(({ id }) => !released.has(id)),
      ...(launched.get(pool.name) ?? []),
    ],
  }));
}

function instanceOf(id: string, launch: Launch, place: number): CapacityInstance {
  return testInstance(id, {
    workers: launch.workers,
    resources: launch.brings,
    tasks: launch.tasks[place] ?? [],
    classKey: launch.classKey,
    runAs: launch.runAs ? runAsOf(launch.runAs) : '',
    timeLimitMs: launch.timeLimitMs,
  });
}

/** How many instances a plan launches, by pool. */
export function launchedIn(plan: CapacityPlan): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { pool, count } of plan.launches) counts[pool] = (counts[pool] ?? 0) + count;
  return counts;
}

export function sentences(plan: CapacityPlan): string[] {
  return plan.unmet.flatMap(({ reasons }) => reasons.map(({ sentence }) => sentence));
}
