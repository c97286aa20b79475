/** The server's half of explanations, plans, budgets and usage. */
import type { ServiceImpl } from '@connectrpc/connect';
import { budgetInput, usageQuery } from '../budgets.ts';
import type { Coordinator } from '../coordinator.ts';
import type { Coordinator as CoordinatorService } from '../gen/drover/v1/coordinator_pb.ts';
import { parsedJobSpec } from '../jobSpec.ts';
import * as budgets from './budgetMessages.ts';
import { principalOf } from './caller.ts';
import { parse } from './check.ts';
import { receiptToWire } from './receiptMessages.ts';
import * as schedule from './scheduleMessages.ts';
import { specFromWire } from './specMessages.ts';
import { need, toNumber, toNumberOrNull } from './wire.ts';

type ScheduleMethod =
  | 'explainJob'
  | 'getReceipt'
  | 'planJob'
  | 'listBudgets'
  | 'setBudget'
  | 'deleteBudget'
  | 'getUsage';

export function scheduleMethods(
  coordinator: Coordinator,
): Pick<ServiceImpl<typeof CoordinatorService>, ScheduleMethod> {
  return {
    async explainJob({ job }, context) {
      return { why: schedule.whyToWire(await coordinator.why(principalOf(context), job)) };
    },
    async getReceipt({ job }, context) {
      return { receipt: receiptToWire(await coordinator.receipt(principalOf(context), job)) };
    },
    async planJob(request, context) {
      const spec = parse(parsedJobSpec, specFromWire(need(request.spec, 'spec')));
      return { plan: budgets.planToWire(await coordinator.plan(principalOf(context), spec)) };
    },
    async listBudgets(_request, context) {
      const views = await coordinator.listBudgets(principalOf(context));
      return { budgets: views.map(budgets.budgetViewToWire) };
    },
    async setBudget(request, context) {
      const wanted = parse(budgetInput, budgets.budgetInputFromWire(request.budget));
      const view = await coordinator.setBudget(principalOf(context), wanted);
      return { budget: budgets.budgetViewToWire(view) };
    },
    async deleteBudget({ tenant, user }, context) {
      await coordinator.deleteBudget(principalOf(context), tenant, user);
      return {};
    },
    async getUsage(request, context) {
      const untilMs = toNumberOrNull(request.untilMs);
      const query = parse(usageQuery, {
        sinceMs: toNumber(request.sinceMs),
        ...(untilMs !== null && { untilMs }),
        by: budgets.usageBy.toWordOrNone(request.by),
      });
      const rows = await coordinator.usage(principalOf(context), query);
      return { rows: rows.map(budgets.usageRowToWire) };
    },
  };
}
