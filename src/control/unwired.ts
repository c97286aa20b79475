/** Budgets and usage until the state has them: this file goes when it does. */
import { DroverError } from '../lib/errors.ts';
import type { Coordinator } from '../protocol/coordinator.ts';

export function unwiredAccounts(): Pick<
  Coordinator,
  'listBudgets' | 'setBudget' | 'deleteBudget' | 'usage'
> {
  const refuse = async (): Promise<never> => {
    throw new DroverError('UNAVAILABLE', 'this controller keeps no budgets');
  };
  return { listBudgets: refuse, setBudget: refuse, deleteBudget: refuse, usage: refuse };
}
