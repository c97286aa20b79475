/** Plans, budgets and usage of the fakes: budgets are kept, nothing is ever used or charged. */
import { DroverError } from '../lib/errors.ts';
import type { Principal } from '../model/token.ts';
import type { BudgetView, PlanView, UsageRow } from './budgets.ts';
import type { Coordinator } from './coordinator.ts';
import { allow } from './fakeAnswers.ts';

type AccountCalls = Pick<
  Coordinator,
  'plan' | 'listBudgets' | 'setBudget' | 'deleteBudget' | 'usage'
>;

export interface FakeAccounts extends AccountCalls {
  /** What `plan` and `usage` say; tests change it. */
  planned: PlanView;
  rows: UsageRow[];
}

const NOTHING_USED: BudgetView['used'] = {
  deviceMillis: 0,
  deviceHoursDay: 0,
  deviceHoursMonth: 0,
  microsDay: 0,
  microsMonth: 0,
  heldMicros: 0,
};

export function fakeAccounts(): FakeAccounts {
  const budgets = new Map<string, BudgetView>();
  const keyOf = (tenant: string, user: string): string => JSON.stringify([tenant, user]);
  const accounts: FakeAccounts = {
    planned: { options: [], never: null },
    rows: [],
    async plan(who) {
      allow(who, 'jobs:read');
      return accounts.planned;
    },
    async listBudgets(who) {
      allow(who, 'jobs:read');
      return [...budgets.values()].filter(({ tenant }) => sees(who, tenant));
    },
    async setBudget(who, { version, ...wanted }) {
      allow(who, 'budgets:manage');
      const key = keyOf(wanted.tenant, wanted.user);
      const present = budgets.get(key)?.version ?? 0;
      if (version !== null && version !== present) {
        throw new DroverError('STALE', `the budget is at version ${present}, not at ${version}`);
      }
      const view = { ...wanted, version: present + 1, used: NOTHING_USED };
      budgets.set(key, view);
      return view;
    },
    async deleteBudget(who, tenant, user) {
      allow(who, 'budgets:manage');
      if (budgets.delete(keyOf(tenant, user))) return;
      const whose = user ? `${tenant}/${user}` : tenant;
      throw new DroverError('NOT_FOUND', `there is no budget of ${whose}`);
    },
    async usage(who) {
      allow(who, 'jobs:read');
      return accounts.rows;
    },
  };
  return accounts;
}

function sees(who: Principal, tenant: string): boolean {
  return tenant === who.tenant || who.scopes.includes('tenants:manage');
}
