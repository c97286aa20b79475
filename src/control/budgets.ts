/** Budgets in the Coordinator: what tenants and users may have, and have used of it. */
import { dayOf, HOUR_MS, monthOf } from '../core/money.ts';
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Budget } from '../model/budget.ts';
import type { BudgetView } from '../protocol/budgets.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { LiveAccount } from '../state/accounts.ts';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import type { Mutate } from './mutate.ts';

export interface BudgetsOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  clock: Clock;
}

export function createBudgets(
  options: BudgetsOptions,
): Pick<Coordinator, 'listBudgets' | 'setBudget' | 'deleteBudget'> {
  const { state, mutate, committer, clock } = options;
  return {
    async listBudgets(who) {
      const all = who.scopes.includes('budgets:manage');
      const views: BudgetView[] = [];
      for (const live of state.accounts.all()) {
        if (!live.budget || (!all && live.account.tenant !== who.tenant)) continue;
        views.push(budgetView(live, live.budget, clock.now()));
      }
      await committer.durable();
      return views.toSorted((a, b) => compare(a.tenant, b.tenant) || compare(a.user, b.user));
    },

    async setBudget(who, { version, ...budget }) {
      const live = state.accounts.of(budget.tenant, budget.user);
      const present = live.budget?.version ?? 0;
      // Nothing happens between this look and the mutation.
      if (version !== null && version !== present) {
        throw new DroverError('STALE', `the budget is at version ${present}, not at ${version}`, {
          hint: 'somebody else has changed it: look again, then change it',
        });
      }
      mutate({ kind: 'set-budget', budget, by: who.user });
      if (!live.budget) throw new Error('setting a budget left none');
      const view = budgetView(live, live.budget, clock.now());
      await committer.durable();
      return view;
    },

    async deleteBudget(who, tenant, user) {
      const result = mutate({ kind: 'delete-budget', tenant, user, by: who.user });
      if (result.kind === 'missing') {
        throw new DroverError('NOT_FOUND', `there is no ${result.what}`, {
          hint: 'list them with: drover budget',
        });
      }
      await committer.durable();
    },
  };
}

export function budgetView(
  { account, held }: LiveAccount,
  budget: Budget,
  nowMs: number,
): BudgetView {
  const today = account.day === dayOf(nowMs);
  const thisMonth = account.month === monthOf(nowMs);
  return {
    ...budget,
    used: {
      deviceMillis: held.deviceMillis,
      deviceHoursDay: today ? account.dayDeviceMs / HOUR_MS : 0,
      deviceHoursMonth: thisMonth ? account.monthDeviceMs / HOUR_MS : 0,
      microsDay: today ? account.dayMicros : 0,
      microsMonth: thisMonth ? account.monthMicros : 0,
      heldMicros: held.micros,
    },
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
