/** Budgets of the fleet file as the planner hears of them: the one place that maps them. */
import type { PlannerAccount } from '../../core/schedule/view.ts';
import type { Budget } from '../../model/budget.ts';
import type { Planner } from '../planner.ts';

const HOUR_MS = 3_600_000;

/** Tells the planner of all accounts with the first deltas it gets. */
export function withAccounts(planner: Planner, budgets: readonly Budget[]): Planner {
  let told = false;
  return {
    plan(deltas, nowMs) {
      if (told) return planner.plan(deltas, nowMs);
      told = true;
      return planner.plan(
        { ...deltas, accounts: budgets.map((one) => account(one, nowMs)) },
        nowMs,
      );
    },
  };
}

function account(budget: Budget, nowMs: number): PlannerAccount {
  const { tenant, user, weight, deviceMillis, mode } = budget;
  const hours = least(budget.deviceHoursPerDay, budget.deviceHoursPerMonth);
  return {
    tenant,
    user,
    weight,
    deviceMillis,
    deviceMsLeft: hours === null ? null : hours * HOUR_MS,
    microsLeft: least(budget.microsPerDay, budget.microsPerMonth),
    mode,
    usage: { cpuMillis: 0, memoryMiB: 0, deviceMillis: 0, asOfMs: nowMs },
  };
}

function least(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}
