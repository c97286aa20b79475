/**
 * What is held: claims on workers, with the capacity and the money they take up. Nominated claims
 * lie on top of those of the work they wait for, so that a worker's free capacity may be negative
 * until that has gone.
 */
import { deviceMillisOf, priceOf } from '../core/money.ts';
import type { Account } from '../model/account.ts';
import type { Claim } from '../model/claim.ts';
import { taskOf, type JobId, type TaskId } from '../model/ids.ts';
import { hold, holdOf } from './accounts.ts';
import type { LiveJob, Nomination } from './live.ts';
import type { State } from './state.ts';

export function take(state: State, claim: Claim): void {
  state.claims.set(claim.owner, claim);
  state.workers.get(claim.worker)?.capacity.take(claim);
  state.deltas.claims.add(claim.owner);
}

export function release(state: State, claim: Claim): void {
  state.claims.delete(claim.owner);
  state.workers.get(claim.worker)?.capacity.give(claim);
  state.deltas.claims.add(claim.owner);
  const { claims } = state.changes;
  if (claims.get(claim) === 'insert') claims.delete(claim);
  else claims.set(claim, 'delete');
}

export function addNomination(state: State, nomination: Nomination): void {
  const { claim, task, priceMicros } = nomination;
  state.changes.claims.set(claim, 'insert');
  take(state, claim);
  state.nominations.set(task.id, nomination);
  setAside(state, task.job, claim, priceMicros, 1);
}

export function dropNomination(state: State, id: TaskId): void {
  const nomination = state.nominations.get(id);
  if (!nomination) return;
  const { claim, task, priceMicros } = nomination;
  state.nominations.delete(id);
  setAside(state, task.job, claim, priceMicros, -1);
  release(state, claim);
}

/** The nominated claim becomes that of an attempt, which sets aside its own money. */
export function takeOver(state: State, id: TaskId): void {
  const nomination = state.nominations.get(id);
  if (!nomination) return;
  state.nominations.delete(id);
  setAside(state, nomination.task.job, nomination.claim, nomination.priceMicros, -1);
  nomination.claim.state = 'HELD';
}

/** Of a claim that was read back, where it is a nomination. */
export function adoptNomination(state: State, claim: Claim): void {
  const found = claim.state === 'NOMINATED' ? state.task(taskOf(claim.owner)) : undefined;
  if (!found) return;
  const priceMicros = priceOfClaim(state, claim);
  state.nominations.set(found.task.id, { claim, priceMicros, ...found });
  setAside(state, found.task.job, claim, priceMicros, 1);
}

export function priceOfClaim(state: State, claim: Claim): number {
  const pool = state.poolPolicies.get(state.workers.get(claim.worker)?.worker.pool ?? '');
  return pool ? priceOf(claim, pool) : 0;
}

/** What a new claim of this job would set aside of its accounts. */
export function newHold(state: State, live: LiveJob, claim: Claim): ReturnType<typeof holdOf> {
  const { timeLimitMs } = live.job.spec;
  return holdOf(deviceMillisOf(claim), priceOfClaim(state, claim), timeLimitMs);
}

/** What a nomination has set aside. */
export function nominationHold({
  claim,
  priceMicros,
  live,
}: Nomination): ReturnType<typeof holdOf> {
  return holdOf(deviceMillisOf(claim), priceMicros, live.job.spec.timeLimitMs);
}

/** Sets aside what a claim may come to cost, or gives it back. */
export function setAside(
  state: State,
  job: JobId,
  claim: Claim,
  priceMicros: number,
  sign: 1 | -1,
): void {
  const live = state.jobs.get(job);
  if (!live) return;
  const held = holdOf(deviceMillisOf(claim), priceMicros, live.job.spec.timeLimitMs);
  if (held.deviceMillis === 0 && held.micros === 0) return;
  for (const account of state.accounts.both(live.job.tenant, live.job.owner)) {
    hold(account.held, held, sign);
    state.deltas.accounts.add(account);
  }
}

export function touchAccount(state: State, account: Account): void {
  if (account.version++ === 0) state.changes.accounts.set(account, 'insert');
  else if (!state.changes.accounts.has(account)) state.changes.accounts.set(account, 'update');
  state.deltas.accounts.add(state.accounts.of(account.tenant, account.user));
}
