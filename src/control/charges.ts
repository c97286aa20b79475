/**
 * The charge loop: what runs long is charged every hour, budgets begin anew with the day, and work
 * over a limit that says so is stopped.
 */
import { dayOf, HOUR_MS } from '../core/money.ts';
import type { Clock } from '../lib/clock.ts';
import type { Attempt } from '../model/attempt.ts';
import type { AttemptUid } from '../model/ids.ts';
import { leftOf, type LiveAccount } from '../state/accounts.ts';
import type { State } from '../state/state.ts';
import type { Mutate } from './mutate.ts';

export function createChargeStep(
  state: State,
  mutate: Mutate,
  clock: Clock,
  hintSchedule: () => void,
): () => Promise<void> {
  let day = dayOf(clock.now());
  /** On the boot clock: when an attempt was last charged or first seen. */
  const chargedAt = new Map<AttemptUid, number>();

  return async () => {
    const nowMs = clock.now();
    chargeDue();
    if (dayOf(nowMs) !== day) {
      day = dayOf(nowMs);
      // The planner holds work by what was left yesterday.
      for (const account of state.accounts.all()) {
        if (account.budget) state.deltas.accounts.add(account);
      }
      hintSchedule();
    }
    for (const account of state.accounts.all()) {
      if (account.budget?.atLimit === 'stop' && isUsedUp(account, nowMs)) stopAll(account);
    }
    stopCostly();
  };

  function chargeDue(): void {
    const bootMs = clock.bootMs();
    const due: AttemptUid[] = [];
    for (const uid of chargedAt.keys()) if (!state.attempts.has(uid)) chargedAt.delete(uid);
    for (const attempt of state.attempts.values()) {
      if (attempt.startedAtMs === null || !isCharged(state, attempt)) continue;
      const since = chargedAt.get(attempt.uid);
      if (since === undefined) chargedAt.set(attempt.uid, bootMs);
      else if (bootMs - since >= HOUR_MS) {
        chargedAt.set(attempt.uid, bootMs);
        due.push(attempt.uid);
      }
    }
    if (due.length > 0) mutate({ kind: 'charge', attempts: due });
  }

  function stopAll({ account }: LiveAccount): void {
    const who = account.user === '' ? account.tenant : `${account.tenant}/${account.user}`;
    for (const attempt of [...state.attempts.values()]) {
      if (attempt.tenant !== account.tenant || !isCharged(state, attempt)) continue;
      const owner = state.jobs.get(attempt.job)?.job.owner;
      if (account.user !== '' && owner !== account.user) continue;
      stop(attempt, `the budget of ${who} is used up`);
    }
  }

  /** A job's own limit ends it for good: there is nothing it could wait for. */
  function stopCostly(): void {
    for (const live of [...state.costLimited]) {
      const { id, spec, spentMicros } = live.job;
      let running = 0;
      for (const attempt of live.attempts.values()) {
        const ms = attempt.startedAtMs === null ? 0 : clock.now() - attempt.startedAtMs;
        running += Math.max(0, (attempt.priceMicros / HOUR_MS) * ms - attempt.chargedMicros);
      }
      if (spentMicros + running < spec.maxCostMicros) continue;
      const by = `its cost limit of ${spec.maxCostMicros / 1_000_000}`;
      mutate({ kind: 'cancel', job: id, by });
    }
  }

  function stop(attempt: Attempt, reason: string): void {
    if (attempt.state === 'STOPPING') return;
    const attempts = [{ uid: attempt.uid, version: attempt.version }];
    mutate({ kind: 'stop', attempts, cause: 'preempted', reason });
  }
}

/** Holds are set aside an hour ahead, so this is before the limit itself is passed. */
function isUsedUp(account: LiveAccount, nowMs: number): boolean {
  const { deviceMs, micros } = leftOf(account, nowMs);
  return (deviceMs !== null && deviceMs < 0) || (micros !== null && micros < 0);
}

function isCharged(state: State, attempt: Attempt): boolean {
  return attempt.priceMicros > 0 || (state.claims.get(attempt.uid)?.devices.length ?? 0) > 0;
}
