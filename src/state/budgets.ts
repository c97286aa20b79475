/** Budgets: what an operator allows a tenant or one of its users. */
import type { Budget } from '../model/budget.ts';
import type { RowOperation } from './changes.ts';
import { touchAccount } from './holdings.ts';
import type { DeleteBudget, Result, SetBudget } from './mutations.ts';
import { DONE, missing } from './mutations.ts';
import type { State } from './state.ts';

export function setBudget(state: State, mutation: SetBudget, nowMs: number): Result {
  const { tenant, user } = mutation.budget;
  const live = state.accounts.of(tenant, user);
  const known = live.budget;
  const budget: Budget = { ...mutation.budget, version: (known?.version ?? 0) + 1 };
  const unwritten = forget(state, tenant, user);
  const stored = unwritten ? unwritten !== 'insert' : known !== null;
  state.changes.budgets.set(budget, stored ? 'update' : 'insert');
  live.budget = budget;
  // Of another limit another part is used.
  if (live.account.told !== '') {
    live.account.told = '';
    touchAccount(state, live.account);
  }
  state.deltas.accounts.add(live);
  state.note(nowMs, { kind: 'budget.set', tenant, data: { user, by: mutation.by } });
  return DONE;
}

export function deleteBudget(state: State, mutation: DeleteBudget, nowMs: number): Result {
  const { tenant, user } = mutation;
  const live = state.accounts.of(tenant, user);
  const { budget } = live;
  if (!budget) return missing(`budget of ${tenant}${user && `/${user}`}`);
  if (forget(state, tenant, user) !== 'insert') state.changes.budgets.set(budget, 'delete');
  live.budget = null;
  state.deltas.accounts.add(live);
  state.note(nowMs, { kind: 'budget.deleted', tenant, data: { user, by: mutation.by } });
  return DONE;
}

/** Of what was not yet written for them only the last word counts; says what that was to be. */
function forget(state: State, tenant: string, user: string): RowOperation | null {
  for (const [budget, operation] of state.changes.budgets) {
    if (budget.tenant !== tenant || budget.user !== user) continue;
    state.changes.budgets.delete(budget);
    return operation;
  }
  return null;
}
