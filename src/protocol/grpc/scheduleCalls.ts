/** The client's half of explanations, plans, budgets and usage. */
import type { Coordinator } from '../coordinator.ts';
import * as budgets from './budgetMessages.ts';
import type { Connection } from './connection.ts';
import { receiptFromWire } from './receiptMessages.ts';
import * as schedule from './scheduleMessages.ts';
import { specToWire } from './specMessages.ts';
import { toBigint } from './wire.ts';

type ScheduleCall =
  | 'why'
  | 'receipt'
  | 'plan'
  | 'listBudgets'
  | 'setBudget'
  | 'deleteBudget'
  | 'usage';

export function scheduleCalls({
  coordinator,
  call,
  by,
}: Connection): Pick<Coordinator, ScheduleCall> {
  return {
    why: (who, job) =>
      call(
        by(who),
        (options) => coordinator.explainJob({ job }, options),
        ({ why }) => schedule.whyFromWire(why),
      ),
    receipt: (who, job) =>
      call(
        by(who),
        (options) => coordinator.getReceipt({ job }, options),
        ({ receipt }) => receiptFromWire(receipt),
      ),
    plan: (who, spec) =>
      call(
        by(who),
        (options) => coordinator.planJob({ spec: specToWire(spec) }, options),
        ({ plan }) => budgets.planFromWire(plan),
      ),
    listBudgets: (who) =>
      call(
        by(who),
        (options) => coordinator.listBudgets({}, options),
        (response) => response.budgets.map(budgets.budgetViewFromWire),
      ),
    setBudget: (who, budget) =>
      call(
        by(who),
        (options) => coordinator.setBudget({ budget: budgets.budgetToWire(budget) }, options),
        (response) => budgets.budgetViewFromWire(response.budget),
      ),
    deleteBudget: (who, tenant, user) =>
      call(
        by(who),
        (options) => coordinator.deleteBudget({ tenant, user }, options),
        () => undefined,
      ),
    async usage(who, query) {
      const request = {
        sinceMs: toBigint(query.sinceMs),
        untilMs: toBigint(query.untilMs),
        by: budgets.usageBy.toWire(query.by),
      };
      return call(
        by(who),
        (options) => coordinator.getUsage(request, options),
        ({ rows }) => rows.map(budgets.usageRowFromWire),
      );
    },
  };
}
