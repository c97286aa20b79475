/** What must hold of a live state after every mutation. */
import { expect } from 'vitest';
import { countTasks } from '../../src/core/lifecycle/job.ts';
import { deviceMillisOf } from '../../src/core/money.ts';
import { Capacity } from '../../src/core/placement/capacity.ts';
import { jobOf } from '../../src/model/ids.ts';
import { holdOf } from '../../src/state/accounts.ts';
import type { State } from '../../src/state/state.ts';

export function checkInvariants(state: State): void {
  for (const { worker, capacity, attempts } of state.workers.values()) {
    const anew = new Capacity(worker.resources);
    for (const claim of state.claims.values()) if (claim.worker === worker.id) anew.take(claim);
    expect(capacity.cpuFree).toBe(anew.cpuFree);
    expect(capacity.deviceFree).toEqual(anew.deviceFree);
    expect(capacity.portsTaken).toEqual(anew.portsTaken);
    // Without what is only nominated, nobody holds more than there is.
    for (const { claim } of state.nominations.values()) {
      if (claim.worker === worker.id) anew.give(claim);
    }
    expect(Math.min(anew.cpuFree, anew.memoryFree, ...anew.deviceFree)).toBeGreaterThan(-1);
    for (const uid of attempts.keys()) expect(state.attempts.get(uid)?.worker).toBe(worker.id);
  }
  const nominated = [...state.nominations.values()].map(({ claim }) => claim.owner);
  const owned = [...state.attempts.keys(), ...nominated];
  expect([...state.claims.keys()].toSorted()).toEqual(owned.toSorted());
  for (const [id, { claim, live, task }] of state.nominations) {
    expect([id, task.state, claim.state]).toEqual([task.id, 'PENDING', 'NOMINATED']);
    expect(live.waitsFor).toBeNull();
  }
  checkMoney(state);
  for (const live of state.jobs.values()) {
    expect(live.counts).toEqual(countTasks(live.tasks));
    const liveTasks = live.counts.PENDING + live.counts.ASSIGNED + live.counts.RUNNING;
    expect(live.job.endedAtMs === null).toBe(liveTasks > 0);
    if (live.job.endedAtMs !== null) expect(live.attempts.size).toBe(0);
    for (const task of live.tasks) {
      const attempt = live.attempts.get(task.index);
      if (attempt) expect(attempt.n).toBe(task.attempts);
      if (attempt) expect(attempt.state).not.toBe('ENDED');
      const placed = task.state === 'ASSIGNED' || (task.state === 'RUNNING' && !task.roundDone);
      expect(attempt !== undefined).toBe(placed);
    }
  }
  const owners = [...state.attempts.values()].map(({ task }) => task);
  expect(new Set(owners).size).toBe(owners.length);
}

/** What is set aside is what live claims say, and every charge is in the books twice. */
function checkMoney(state: State): void {
  const held = new Map<string, number[]>();
  for (const claim of state.claims.values()) {
    const live = state.jobs.get(jobOf(claim.owner));
    const attempt = state.attempts.get(claim.owner);
    const nomination = [...state.nominations.values()].find((one) => one.claim === claim);
    const price = attempt?.priceMicros ?? nomination?.priceMicros ?? 0;
    if (!live) continue;
    const one = holdOf(deviceMillisOf(claim), price, live.job.spec.timeLimitMs);
    for (const user of [live.job.owner, '']) {
      const key = `${live.job.tenant}/${user}`;
      const sum = held.get(key) ?? [0, 0, 0];
      held.set(key, [sum[0]! + one.deviceMillis, sum[1]! + one.deviceMs, sum[2]! + one.micros]);
    }
  }
  for (const live of state.accounts.all()) {
    const { tenant, user } = live.account;
    const { deviceMillis, deviceMs, micros } = live.held;
    expect([deviceMillis, deviceMs, micros]).toEqual(held.get(`${tenant}/${user}`) ?? [0, 0, 0]);
  }
  let sum = 0;
  for (const { micros } of state.changes.ledger) sum += micros;
  expect(sum).toBe(0);
}
