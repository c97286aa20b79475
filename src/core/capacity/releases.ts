/**
 * Which machines are given back. Nothing flaps: a machine that is there goes after the idle
 * timeout, and one that still waits in its provider's queue goes after nothing has wanted it for as
 * long; one that has started is let come, as it may be wanted a moment later and is paid for
 * already. Only what was sized for work that is gone goes at once: it can serve nobody else.
 */
import type { InstanceId } from '../../model/ids.ts';
import { duration, money } from '../explain/words.ts';
import type { CapacityInstance, CapacityPlan, CapacityPool, Release } from './capacity.ts';
import type { Earliest } from './earliest.ts';
import { PERIODS } from './reasons.ts';

/** So long before the next quantum is due, one that cannot be paid for is told to go. */
export const RENEWAL_MARGIN_MS = 30_000;

export function releasesOf(
  pools: readonly CapacityPool[],
  wanted: ReadonlySet<InstanceId>,
  nowMs: number,
  next: Earliest,
): Pick<CapacityPlan, 'releases' | 'unwanted'> {
  const releases: Release[] = [];
  const unwanted: InstanceId[] = [];
  for (const pool of pools) {
    const gone = new Map<InstanceId, string>();
    for (const instance of pool.instances) {
      const reason = servesNobody(instance);
      if (reason) gone.set(instance.id, reason);
    }
    const spare = pool.instances.filter(
      ({ id, state, tasks }) => state !== 'leaving' && tasks.length === 0 && !wanted.has(id),
    );
    for (const { id, state } of spare) if (state === 'coming') unwanted.push(id);
    releaseSpare(pool, spare, gone, nowMs, next);
    const unused = new Set(gone.keys());
    if (pool.spend) releaseUnpaid(pool, gone, nowMs, next);
    for (const [instance, reason] of gone) {
      releases.push({ pool: pool.name, instance, reason, unpaid: !unused.has(instance) });
    }
  }
  return { releases, unwanted };
}

function servesNobody(instance: CapacityInstance): string | null {
  const { tasks, waiting, state, idleSinceMs } = instance;
  if (tasks.length === 0 || waiting > 0 || state === 'leaving') return null;
  if (state === 'coming') return 'what it was sized for no longer waits';
  return idleSinceMs === null ? null : 'what it was sized for has ended';
}

/**
 * Those unused for longest first, down to the pool's least number. Of that, one on its way does not
 * stand for one that is there.
 */
function releaseSpare(
  pool: CapacityPool,
  spare: readonly CapacityInstance[],
  gone: Map<InstanceId, string>,
  nowMs: number,
  next: Earliest,
): void {
  const staying = pool.instances.filter(({ id, state }) => state !== 'leaving' && !gone.has(id));
  let all = staying.length;
  let joined = staying.filter(({ state }) => state === 'joined').length;
  const oldest = spare
    .filter(({ state, queued }) => state === 'joined' || queued)
    .toSorted((a, b) => (a.idleSinceMs ?? nowMs) - (b.idleSinceMs ?? nowMs) || newest(a, b));
  for (const { id, state, idleSinceMs } of oldest) {
    if (idleSinceMs === null || (state === 'joined' ? joined : all) <= pool.min) continue;
    const untilMs = idleSinceMs + pool.idleTimeoutMs;
    if (untilMs > nowMs) {
      next.at(untilMs);
      continue;
    }
    const forWords = duration(nowMs - idleSinceMs);
    const what = state === 'joined' ? `idle for ${forWords}` : `not wanted for ${forWords}`;
    gone.set(id, what);
    all--;
    if (state === 'joined') joined--;
  }
}

/**
 * What is left of the limit must pay the next quantum of every machine: those for which it does not
 * go before theirs is due, so that the limit holds. Idle ones first; then, as nothing else helps,
 * the newest, which have the least to lose. What is paid for is used up.
 */
function releaseUnpaid(
  pool: CapacityPool,
  gone: Map<InstanceId, string>,
  nowMs: number,
  next: Earliest,
): void {
  const { spend, quantumMicros, instances } = pool;
  if (!spend || quantumMicros === 0) return;
  const staying = instances.filter(({ id, state }) => state !== 'leaving' && !gone.has(id));
  let left = spend.leftMicros;
  for (const { id, paidUntilMs } of staying.toSorted(byWorth)) {
    if (left >= quantumMicros) {
      left -= quantumMicros;
      continue;
    }
    const dueMs = (paidUntilMs ?? nowMs) - RENEWAL_MARGIN_MS;
    if (dueMs > nowMs) {
      next.at(dueMs);
      continue;
    }
    const sum = money(spend.limitMicros - Math.max(0, spend.leftMicros));
    const limit = `${money(spend.limitMicros)} ${PERIODS[spend.period]}`;
    gone.set(id, `${sum} of ${limit} are spent: the next ${money(quantumMicros)} would be more`);
  }
}

/** Those at work or on their way first, the oldest before the newest; then idle ones. */
function byWorth(a: CapacityInstance, b: CapacityInstance): number {
  const idle = (of: CapacityInstance): boolean => of.state === 'joined' && of.idleSinceMs !== null;
  return Number(idle(a)) - Number(idle(b)) || -newest(a, b);
}

function newest(a: CapacityInstance, b: CapacityInstance): number {
  return a.id > b.id ? -1 : Number(a.id < b.id);
}
