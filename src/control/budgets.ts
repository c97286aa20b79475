/** Budgets and what was used: set by operators, seen by whom they concern. */
import { dayOf, HOUR_MS, monthOf } from '../core/money.ts';
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Budget } from '../model/budget.ts';
import type { Principal } from '../model/token.ts';
import type { BudgetView, UsageQuery, UsageRow } from '../protocol/budgets.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { LiveAccount } from '../state/accounts.ts';
import type { State } from '../state/state.ts';
import type { History } from '../store/contract.ts';
import type { UsageDayRow } from '../store/database.ts';
import type { Committer } from './committer.ts';
import type { Mutate } from './mutate.ts';

export interface BudgetsOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  history: History;
  clock: Clock;
}

type BudgetCalls = Pick<Coordinator, 'listBudgets' | 'setBudget' | 'deleteBudget' | 'usage'>;

export function createBudgets(options: BudgetsOptions): BudgetCalls {
  const { state, mutate, committer, history, clock } = options;
  return {
    async listBudgets(who) {
      const views: BudgetView[] = [];
      for (const live of state.accounts.all()) {
        const mine = live.account.tenant === who.tenant || isOperator(who);
        if (live.budget && mine) views.push(budgetView(live, live.budget, clock.now()));
      }
      await committer.durable();
      return views.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
    },

    async setBudget(who, { version, ...budget }) {
      refuseOthers(who, budget.tenant);
      const live = state.accounts.of(budget.tenant, budget.user);
      const known = live.budget?.version ?? 0;
      if (version !== null && version !== known) {
        throw new DroverError('STALE', `the budget is at version ${known}, not ${version}`, {
          hint: 'read it again and change what you read',
        });
      }
      mutate({ kind: 'set-budget', budget, by: who.user });
      const view = budgetView(live, live.budget as Budget, clock.now());
      await committer.durable();
      return view;
    },

    async deleteBudget(who, tenant, user) {
      refuseOthers(who, tenant);
      const result = mutate({ kind: 'delete-budget', tenant, user, by: who.user });
      if (result.kind === 'missing') {
        throw new DroverError('NOT_FOUND', `there is no ${result.what}`, {
          hint: 'see what there is with: drover budget',
        });
      }
      await committer.durable();
    },

    async usage(who, query) {
      await committer.durable();
      const tenant = isOperator(who) ? null : who.tenant;
      // Whole days; one that begins when the time is over is not among them.
      const [first, last] = [dayOf(query.sinceMs), dayOf(query.untilMs - 1)];
      return sumUp(await history.system().usageDays(first, last, tenant), query);
    },
  };
}

function refuseOthers(who: Principal, tenant: string): void {
  if (tenant === who.tenant || isOperator(who)) return;
  throw new DroverError('PERMISSION_DENIED', `the budget of ${tenant} needs tenants:manage`, {
    hint: `your token may set those of ${who.tenant}`,
  });
}

function isOperator({ scopes }: Principal): boolean {
  return scopes.includes('tenants:manage');
}

function keyOf({ tenant, user }: { tenant: string; user: string }): string {
  return `${tenant}\n${user}`;
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

function sumUp(rows: readonly UsageDayRow[], { by }: UsageQuery): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const key = groupOf(row, by);
    const none = { key, deviceHours: 0, cpuHours: 0, costMicros: 0, attempts: 0 };
    const sum = sums.get(key) ?? none;
    sum.deviceHours += row.device_ms / HOUR_MS;
    sum.cpuHours += row.cpu_ms / HOUR_MS;
    sum.costMicros += row.micros;
    sum.attempts += row.attempts;
    sums.set(key, sum);
  }
  return [...sums.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function groupOf(row: UsageDayRow, by: UsageQuery['by']): string {
  switch (by) {
    case 'tenant':
      return row.tenant;
    case 'user':
      return `${row.tenant}/${row.user_name}`;
    case 'pool':
      return row.pool;
    default:
      return new Date(row.day * 24 * HOUR_MS).toISOString().slice(0, 10);
  }
}
