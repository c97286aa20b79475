/**
 * Who has used what, holds what and may have what: one account for each tenant and each of its
 * users. Sums only; charges.ts decides what is added.
 */
import { dayOf, deviceMsOf, holdMicros, holdMs, HOUR_MS, monthOf } from '../core/money.ts';
import type { PlannerAccount } from '../core/schedule/view.ts';
import type { Account } from '../model/account.ts';
import type { Budget } from '../model/budget.ts';

/** What live claims set aside. Follows from them, so it has no row. */
interface Held {
  deviceMillis: number;
  deviceMs: number;
  micros: number;
}

export interface LiveAccount {
  account: Account;
  held: Held;
  budget: Budget | null;
}

/** What one claim sets aside. */
export function holdOf(deviceMillis: number, priceMicros: number, timeLimitMs: number): Held {
  const ms = holdMs(timeLimitMs);
  return {
    deviceMillis,
    deviceMs: deviceMsOf(deviceMillis, ms),
    micros: holdMicros(priceMicros, ms),
  };
}

export class Accounts {
  readonly #live = new Map<string, LiveAccount>();

  constructor(accounts: Account[], budgets: Budget[]) {
    for (const account of accounts) this.of(account.tenant, account.user).account = account;
    for (const budget of budgets) this.of(budget.tenant, budget.user).budget = budget;
  }

  of(tenant: string, user: string): LiveAccount {
    const key = `${tenant}\n${user}`;
    let live = this.#live.get(key);
    if (!live) {
      live = {
        account: emptyAccount(tenant, user),
        held: { deviceMillis: 0, deviceMs: 0, micros: 0 },
        budget: null,
      };
      this.#live.set(key, live);
    }
    return live;
  }

  /** Whatever a user does counts for the tenant too. */
  both(tenant: string, user: string): [LiveAccount, LiveAccount] {
    return [this.of(tenant, user), this.of(tenant, '')];
  }

  all(): Iterable<LiveAccount> {
    return this.#live.values();
  }
}

export function hold(sum: Held, held: Held, sign: 1 | -1): void {
  sum.deviceMillis += sign * held.deviceMillis;
  sum.deviceMs += sign * held.deviceMs;
  sum.micros += sign * held.micros;
}

/** Sums of an earlier day or month are over. */
export function turnPage(account: Account, nowMs: number): void {
  const day = dayOf(nowMs);
  if (account.day !== day) {
    Object.assign(account, { day, dayMicros: 0, dayDeviceMs: 0 });
    forgetTold(account, 'day');
  }
  const month = monthOf(nowMs);
  if (account.month !== month) {
    Object.assign(account, { month, monthMicros: 0, monthDeviceMs: 0 });
    forgetTold(account, 'month');
  }
}

/** A new day or month has told nothing yet. */
function forgetTold(account: Account, period: 'day' | 'month'): void {
  if (account.told === '') return;
  const kept = account.told.split(' ').filter((word) => !word.startsWith(`${period}-`));
  account.told = kept.join(' ');
}

/** What may still be set aside; null: anything. */
export function leftOf(
  { account, held, budget }: LiveAccount,
  nowMs: number,
): {
  deviceMillis: number | null;
  deviceMs: number | null;
  micros: number | null;
} {
  if (!budget) return { deviceMillis: null, deviceMs: null, micros: null };
  const today = account.day === dayOf(nowMs);
  const thisMonth = account.month === monthOf(nowMs);
  const hours = (limit: number | null): number | null => limit && limit * HOUR_MS;
  return {
    deviceMillis: left(budget.deviceMillis, held.deviceMillis),
    deviceMs: least(
      left(hours(budget.deviceHoursPerDay), held.deviceMs + (today ? account.dayDeviceMs : 0)),
      left(
        hours(budget.deviceHoursPerMonth),
        held.deviceMs + (thisMonth ? account.monthDeviceMs : 0),
      ),
    ),
    micros: least(
      left(budget.microsPerDay, held.micros + (today ? account.dayMicros : 0)),
      left(budget.microsPerMonth, held.micros + (thisMonth ? account.monthMicros : 0)),
    ),
  };
}

/** Why a hard budget does not allow this much more; null: it does. */
export function overBudget(live: LiveAccount, more: Held, nowMs: number): string | null {
  if (live.budget?.mode !== 'hard') return null;
  const left = leftOf(live, nowMs);
  const { tenant, user } = live.account;
  const who = user === '' ? `tenant ${tenant}` : `user ${user} of tenant ${tenant}`;
  if (exceeds(more.deviceMillis, left.deviceMillis)) {
    return `${who} would hold more devices than its quota`;
  }
  if (exceeds(more.deviceMs, left.deviceMs)) return `${who} has no device time left`;
  return exceeds(more.micros, left.micros) ? `${who} has no money left` : null;
}

/** Whoever asks for nothing is not held by a limit that others have passed. */
function exceeds(more: number, left: number | null): boolean {
  return left !== null && more > 0 && more > left;
}

export function plannerAccount(live: LiveAccount, nowMs: number): PlannerAccount {
  const { tenant, user, usage } = live.account;
  const { deviceMs, micros } = leftOf(live, nowMs);
  return {
    tenant,
    user,
    weight: live.budget?.weight ?? 1,
    deviceMillis: live.budget?.deviceMillis ?? null,
    deviceMsLeft: deviceMs,
    microsLeft: micros,
    mode: live.budget?.mode ?? 'hard',
    usage,
  };
}

function left(limit: number | null, used: number): number | null {
  return limit === null ? null : limit - used;
}

function least(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

function emptyAccount(tenant: string, user: string): Account {
  return {
    tenant,
    user,
    usage: { cpuMillis: 0, memoryMiB: 0, deviceMillis: 0, asOfMs: 0 },
    day: 0,
    dayMicros: 0,
    dayDeviceMs: 0,
    month: 0,
    monthMicros: 0,
    monthDeviceMs: 0,
    told: '',
    version: 0,
  };
}
