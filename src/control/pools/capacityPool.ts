/** A pool as capacity planning sees it. */
import type { CapacityInstance, CapacityPool, SpendLeft } from '../../core/capacity/capacity.ts';
import { isComing } from '../../core/lifecycle/instance.ts';
import type { WorkerResources } from '../../model/resources.ts';
import { takesWork } from '../../state/health.ts';
import { instancesOf } from '../../state/instances.ts';
import type { LiveInstance } from '../../state/live.ts';
import { spendingNow } from '../../state/poolSpending.ts';
import type { State } from '../../state/state.ts';
import type { ManagedPool, PoolStatus } from './pool.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MICROS = 1_000_000;

export function capacityPool(
  state: State,
  pool: ManagedPool,
  status: PoolStatus,
  nowMs: number,
): CapacityPool {
  const { name, policy, provider, settings } = pool;
  const { mode, min, max, maxPending, cooldownMs, idleTimeoutMs, assumedJobMs } = settings;
  const { batches, gangs } = provider.capabilities;
  const quantumMs = settings.billingQuantumMs;
  const hourMicros = settings.pricePerInstanceHour * MICROS;
  return {
    ...{ name, mode, min, max, maxPending, cooldownMs, idleTimeoutMs, assumedJobMs },
    ...{ batches, gangs, quantumMs, longestMs: pool.longestMs, perUser: pool.perUser },
    size: mode === 'agents' ? sizeOf(state, pool, status) : null,
    largest: policy.largestWorker,
    attributes: settings.attributes,
    network: settings.network || null,
    terms: policy.terms,
    quantumMicros: Math.round((hourMicros * quantumMs) / HOUR_MS),
    spend: spendLeft(state, pool, nowMs),
    deviceHourMicros: policy.deviceHourMicros,
    cpuHourMicros: policy.cpuHourMicros,
    instances: instancesOf(state, name).map((live) => capacityInstance(state, live, status)),
    backoff: status.backoff,
  };
}

/**
 * What a machine brings: what the settings say, or less where machines that came have less. Else
 * work that fits what was promised and not what comes would bring one after the other.
 */
function sizeOf(
  state: State,
  { name, policy }: ManagedPool,
  status: PoolStatus,
): WorkerResources | null {
  let size = status.smallest ?? policy.largestWorker;
  for (const { worker } of state.workers.values()) {
    if (worker.pool !== name || worker.instance === null || !takesWork(state, worker)) continue;
    size = status.smallest = size ? smaller(size, worker.resources) : worker.resources;
  }
  return size;
}

function smaller(a: WorkerResources, b: WorkerResources): WorkerResources {
  return {
    cpuMillis: Math.min(a.cpuMillis, b.cpuMillis),
    memoryBytes: Math.min(a.memoryBytes, b.memoryBytes),
    devices: b.devices.length <= a.devices.length ? b.devices : a.devices,
    portRange: b.portRange,
  };
}

function capacityInstance(
  state: State,
  { instance }: LiveInstance,
  { idleSince }: PoolStatus,
): CapacityInstance {
  const { id, state: at, workers, resources, tasks, runAs, timeLimitMs, endsAtMs } = instance;
  let classKey = '';
  let waiting = 0;
  for (const task of tasks) {
    const found = state.task(task);
    if (found?.task.state !== 'PENDING') continue;
    classKey = found.live.classKey;
    waiting++;
  }
  return {
    ...{ id, workers, resources, tasks, classKey, waiting, runAs, timeLimitMs, endsAtMs },
    state: at === 'JOINED' ? 'joined' : isComing(at) ? 'coming' : 'leaving',
    queued: at === 'INTENDED' || at === 'REQUESTED',
    idleSinceMs: idleSince.get(id) ?? null,
    paidUntilMs: instance.paidUntilMs,
  };
}

/** Of the limits that are set, the one with the least left. */
function spendLeft(state: State, pool: ManagedPool, nowMs: number): SpendLeft | null {
  const { spendPerHour, spendPerDay, spendPerMonth } = pool.settings;
  const sums = spendingNow(state.machines.spending.get(pool.name), nowMs);
  const now = new Date(nowMs);
  const nextMonthAtMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  const left = (
    period: SpendLeft['period'],
    limit: number,
    spentMicros: number,
    renewsAtMs: number,
  ): SpendLeft[] => {
    if (limit === 0) return [];
    const limitMicros = Math.round(limit * MICROS);
    return [{ period, limitMicros, leftMicros: limitMicros - spentMicros, renewsAtMs }];
  };
  return (
    [
      ...left('hour', spendPerHour, sums.hourMicros, (sums.hour + 1) * HOUR_MS),
      ...left('day', spendPerDay, sums.dayMicros, (sums.day + 1) * DAY_MS),
      ...left('month', spendPerMonth, sums.monthMicros, nextMonthAtMs),
    ].toSorted((a, b) => a.leftMicros - b.leftMicros)[0] ?? null
  );
}
