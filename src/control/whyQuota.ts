/** The budget that holds or demotes a job: whose, of what, and how much of it is used. */
import type { Explanation } from '../core/explain.ts';
import { HOUR_MS } from '../core/money.ts';
import type { Budget } from '../model/budget.ts';
import type { WhyView } from '../protocol/why.ts';
import type { LiveAccount } from '../state/accounts.ts';
import type { State } from '../state/state.ts';
import { budgetView } from './budgets.ts';

const MICROS = 1_000_000;

type Binding = NonNullable<Explanation['quota']>;
/** In devices, hours and whole units of money. */
type Limit = [what: string, limit: number | null, used: number];

/** Null when the budget is gone since the planner looked. */
export function quotaView(state: State, binding: Binding, nowMs: number): WhyView['quota'] {
  const { tenant, user } = binding;
  const live = state.accounts.of(tenant, user);
  if (!live.budget) return null;
  const left = ([, limit, used]: Limit): number =>
    limit === null ? Number.POSITIVE_INFINITY : limit - used;
  const limits = limitsOf(live, live.budget, nowMs)[binding.limit];
  // Of a day's and a month's, the one of which less is left.
  const [tightest] = limits.toSorted((a, b) => left(a) - left(b));
  if (!tightest || tightest[1] === null) return null;
  const [what, limit, used] = tightest;
  return { tenant, user, what, limit, used };
}

function limitsOf(
  live: LiveAccount,
  budget: Budget,
  nowMs: number,
): Record<Binding['limit'], Limit[]> {
  const { used } = budgetView(live, budget, nowMs);
  const { deviceMillis, deviceMs, micros } = live.held;
  const heldHours = deviceMs / HOUR_MS;
  const scaled = (amount: number | null, by: number): number | null => amount && amount / by;
  return {
    devices: [['devices', scaled(budget.deviceMillis, 1000), deviceMillis / 1000]],
    'device-time': [
      ['device hours of today', budget.deviceHoursPerDay, used.deviceHoursDay + heldHours],
      ['device hours of this month', budget.deviceHoursPerMonth, used.deviceHoursMonth + heldHours],
    ],
    money: [
      ['money of today', scaled(budget.microsPerDay, MICROS), (used.microsDay + micros) / MICROS],
      [
        'money of this month',
        scaled(budget.microsPerMonth, MICROS),
        (used.microsMonth + micros) / MICROS,
      ],
    ],
  };
}
