/** Random pools, machines and demands: what must hold of every plan. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import { holdMs } from '../money.ts';
import { Capacity, claimOf } from '../placement/capacity.ts';
import { runAsOf, type CapacityPlan, type CapacityPool, type Demand } from './capacity.ts';
import { planCapacity } from './plan.ts';
import { standingOf } from './suits.ts';
import { carriedOut, HOUR, NOW } from './testCapacity.ts';
import { AMPLE, demands, limits, poolsWith } from './testSites.ts';

function check(
  more: fc.Arbitrary<Partial<CapacityPool>>,
  holds: (pools: CapacityPool[], all: Demand[], plan: CapacityPlan) => void,
): void {
  fc.assert(
    fc.property(poolsWith(more), demands, (pools, all) => {
      holds(pools, all, planCapacity(pools, all, NOW));
    }),
    { numRuns: 1000 },
  );
}

test('never above max, maxPending, the window, or what is left to spend', () => {
  check(limits, (pools, all, plan) => {
    for (const pool of pools) {
      const own = plan.launches.filter(({ pool: of }) => of === pool.name);
      const launched = own.reduce((sum, { count }) => sum + count, 0);
      if (launched === 0) continue;
      const coming = pool.instances.filter(({ state }) => state === 'coming').length;
      expect(pool.backoff.notBeforeMs).toBeLessThanOrEqual(NOW);
      expect(pool.instances.length + launched).toBeLessThanOrEqual(pool.max);
      expect(coming + launched).toBeLessThanOrEqual(pool.maxPending);
      // A gang alone may come past the window.
      const gangs = pool.mode === 'agents' && all.some(({ request }) => request.gangSize > 1);
      if (!gangs) expect(coming + launched).toBeLessThanOrEqual(pool.backoff.window);
      const hours = own.map(({ count, timeLimitMs }) => {
        return count * pool.quantumMicros * Math.ceil(holdMs(timeLimitMs) / pool.quantumMs);
      });
      const reserved = hours.reduce((sum, each) => sum + each, 0);
      if (pool.spend) expect(reserved).toBeLessThanOrEqual(pool.spend.leftMicros);
    }
  });
});

test('a plan that was carried out launches nothing more when it is made again', () => {
  check(limits, (pools, all, plan) => {
    const again = planCapacity(carriedOut(pools, plan), all, NOW);
    const made = again.releases.filter(({ instance: id }) => id.startsWith('z'));
    expect(made).toEqual([]);
    // What is given up leaves room for others, and what is unmet takes what came for others.
    if (plan.releases.length > 0 || plan.unmet.length > 0) return;
    expect(again.launches).toEqual([]);
    const covered = (of: CapacityPlan) => of.coming.map(({ classKey, tasks }) => [classKey, tasks]);
    expect(covered(again)).toEqual(covered(plan));
  });
});

test('plans carried out one after the other come to rest', () => {
  check(limits, (pools, all, plan) => {
    let [now, next] = [pools, plan];
    for (let round = 0; round < 9; round++) {
      now = carriedOut(now, next, round);
      next = planCapacity(now, all, NOW);
      if (next.launches.length === 0 && next.releases.length === 0) return;
    }
    expect(next).toBe('a plan that changes nothing');
  });
});

test('nothing is launched for what machines on their way have room for, counted naively', () => {
  check(fc.constant(AMPLE), (pools, all) => {
    for (const one of all) {
      if (one.request.gangSize > 1 || one.affordable.size > 0) continue;
      const { coming, unmet } = planCapacity(pools, [one], NOW);
      const room = Math.min(roomFor(pools, one), one.waiting);
      const old = coming[0]?.instances.length ?? 0;
      const alone = planCapacity(closed(pools), [one], NOW);
      expect(alone.launches).toEqual([]);
      expect(alone.coming[0]?.tasks ?? 0).toBe(room);
      expect(alone.coming[0]?.instances.length ?? 0).toBe(old);
      if (room === one.waiting) expect(unmet).toEqual([]);
    }
  });
});

function closed(pools: CapacityPool[]): CapacityPool[] {
  return pools.map((pool) => ({ ...pool, max: 0, min: 0 }));
}

/** On machines that come, or idle for no longer than they may. */
function roomFor(pools: CapacityPool[], { request, sinceMs }: Demand): number {
  const { exclusive, antiAffinity } = request.placement;
  const most = exclusive || antiAffinity !== '' ? 1 : Number.POSITIVE_INFINITY;
  let room = 0;
  for (const pool of pools) {
    const { closed: shut, neededMs } = standingOf(pool, request);
    for (const { state, idleSinceMs, runAs, endsAtMs, resources } of pool.instances) {
      if (shut || state === 'leaving' || (runAs !== '' && runAs !== runAsOf(request))) continue;
      const sinceBoth = Math.max(sinceMs, idleSinceMs ?? Number.NEGATIVE_INFINITY);
      if (state === 'joined' && sinceBoth <= NOW - pool.idleTimeoutMs) continue;
      if (state === 'joined' && idleSinceMs === null) continue;
      if (endsAtMs !== null && endsAtMs < NOW + neededMs) continue;
      const free = new Capacity(resources);
      for (let put = 0; put < most; put++) {
        const fit = free.fit(request.resources);
        if (!fit.fits) break;
        free.take(claimOf('' as AttemptUid, '' as WorkerId, request.resources, fit));
        room++;
      }
    }
  }
  return room;
}

test('with ample limits all is covered that some pool could take, and only that', () => {
  check(fc.constant(AMPLE), (pools, all, plan) => {
    const unmet = new Set(plan.unmet.map(({ classKey }) => classKey));
    for (const { request, affordable } of all) {
      if (affordable.size > 0) continue;
      const could = pools.some((pool) => !standingOf(pool, request).refusal);
      if (could) expect([request.key, unmet.has(request.key)]).toEqual([request.key, false]);
    }
    for (const { reasons } of plan.unmet) {
      for (const { code } of reasons) expect(['UNSUITABLE', 'QUOTA']).toContain(code);
    }
  });
});

test('every demand is told of in full: what comes, and why the rest does not', () => {
  check(limits, (pools, all, plan) => {
    const told = new Map(all.map(({ request }) => [request.key, 0]));
    for (const { classKey, tasks } of [...plan.coming, ...plan.unmet]) {
      expect(tasks).toBeGreaterThan(0);
      told.set(classKey, (told.get(classKey) as number) + tasks);
    }
    for (const { request, waiting } of all) expect(told.get(request.key)).toBe(waiting);
    const names = new Set(pools.map(({ name }) => name));
    for (const { classKey, reasons } of plan.unmet) {
      const { request } = all.find((each) => each.request.key === classKey) as Demand;
      if (request.pool === '' || names.has(request.pool)) expect(reasons.length).toBeGreaterThan(0);
    }
  });
});

test('the order in which pools and instances are told does not matter', () => {
  check(limits, (pools, all, plan) => {
    const turned = pools.toReversed().map((pool) => ({
      ...pool,
      instances: pool.instances.toReversed(),
    }));
    const other = planCapacity(turned, all, NOW);
    const sorted = (of: CapacityPlan) => ({
      ...of,
      releases: of.releases.toSorted((a, b) => (a.instance < b.instance ? -1 : 1)),
      unwanted: of.unwanted.toSorted(),
    });
    expect(sorted(other)).toEqual(sorted(plan));
  });
});

test('without demand a pool shrinks to its least, and to nothing where that is zero', () => {
  check(limits, (pools) => {
    const resting = pools.map((pool) => ({
      ...pool,
      instances: pool.instances.map((each) => ({
        ...each,
        queued: true,
        state: each.state === 'leaving' ? ('leaving' as const) : ('joined' as const),
        idleSinceMs: NOW - HOUR,
      })),
    }));
    const plan = planCapacity(resting, [], NOW);
    for (const pool of resting) {
      const gone = plan.releases.filter((each) => each.pool === pool.name).length;
      const there = pool.instances.filter(({ state }) => state !== 'leaving').length;
      const least = Math.min(there, pool.min);
      if (pool.spend) expect(there - gone).toBeLessThanOrEqual(least);
      else expect(there - gone).toBe(least);
    }
  });
});
