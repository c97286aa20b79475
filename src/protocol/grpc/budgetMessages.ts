/** Plans, budgets and usage between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Budget } from '../../model/budget.ts';
import type { BudgetInput, BudgetView, PlanView, UsageQuery, UsageRow } from '../budgets.ts';
import * as wire from '../gen/drover/v1/schedule_pb.ts';
import * as w from './wire.ts';

const budgetMode = w.enumTable<Budget['mode'], wire.BudgetMode>('budget mode', {
  soft: wire.BudgetMode.SOFT,
  hard: wire.BudgetMode.HARD,
});

const atLimit = w.enumTable<Budget['atLimit'], wire.AtLimit>('at limit', {
  finish: wire.AtLimit.FINISH,
  stop: wire.AtLimit.STOP,
});

export const usageBy = w.enumTable<UsageQuery['by'], wire.UsageBy>('usage by', {
  tenant: wire.UsageBy.TENANT,
  user: wire.UsageBy.USER,
  pool: wire.UsageBy.POOL,
  day: wire.UsageBy.DAY,
});

export function planToWire(plan: PlanView): MessageInitShape<typeof wire.PlanSchema> {
  return {
    never: plan.never ?? undefined,
    options: plan.options.map((option) => ({
      ...option,
      startsAtMs: w.toBigintOrNone(option.startsAtMs),
      worker: option.worker ?? undefined,
      pricePerHourMicros: w.toBigint(option.pricePerHourMicros),
      costMicros: w.toBigintOrNone(option.costMicros),
    })),
  };
}

export function planFromWire(sent: wire.Plan | undefined): PlanView {
  const message = w.need(sent, 'plan');
  return {
    never: message.never ?? null,
    options: message.options.map((option) => ({
      pool: option.pool,
      startsAtMs: w.toNumberOrNull(option.startsAtMs),
      worker: option.worker ?? null,
      pricePerHourMicros: w.toNumber(option.pricePerHourMicros),
      costMicros: w.toNumberOrNull(option.costMicros),
      reason: option.reason,
    })),
  };
}

export function budgetToWire(
  budget: BudgetInput | BudgetView,
): MessageInitShape<typeof wire.BudgetLimitsSchema> {
  return {
    tenant: budget.tenant,
    user: budget.user,
    weight: budget.weight,
    deviceMillis: w.toBigintOrNone(budget.deviceMillis),
    deviceHoursPerDay: budget.deviceHoursPerDay ?? undefined,
    deviceHoursPerMonth: budget.deviceHoursPerMonth ?? undefined,
    microsPerDay: w.toBigintOrNone(budget.microsPerDay),
    microsPerMonth: w.toBigintOrNone(budget.microsPerMonth),
    mode: budgetMode.toWire(budget.mode),
    atLimit: atLimit.toWire(budget.atLimit),
    version: w.toBigintOrNone(budget.version),
  };
}

/** What a request may leave out is left out, so that the schema fills it in. */
export function budgetInputFromWire(sent: wire.BudgetLimits | undefined): unknown {
  const message = w.need(sent, 'budget');
  return {
    tenant: message.tenant,
    user: message.user,
    ...(message.weight !== 0 && { weight: message.weight }),
    ...limitsFromWire(message),
    mode: budgetMode.toWordOrNone(message.mode),
    atLimit: atLimit.toWordOrNone(message.atLimit),
    version: w.toNumberOrNull(message.version),
  };
}

function limitsFromWire(message: wire.BudgetLimits) {
  return {
    deviceMillis: w.toNumberOrNull(message.deviceMillis),
    deviceHoursPerDay: message.deviceHoursPerDay ?? null,
    deviceHoursPerMonth: message.deviceHoursPerMonth ?? null,
    microsPerDay: w.toNumberOrNull(message.microsPerDay),
    microsPerMonth: w.toNumberOrNull(message.microsPerMonth),
  };
}

export function budgetViewToWire(view: BudgetView): MessageInitShape<typeof wire.BudgetSchema> {
  const { used } = view;
  return {
    limits: budgetToWire(view),
    used: {
      deviceMillis: w.toBigint(used.deviceMillis),
      deviceHoursDay: used.deviceHoursDay,
      deviceHoursMonth: used.deviceHoursMonth,
      microsDay: w.toBigint(used.microsDay),
      microsMonth: w.toBigint(used.microsMonth),
      heldMicros: w.toBigint(used.heldMicros),
    },
  };
}

export function budgetViewFromWire(sent: wire.Budget | undefined): BudgetView {
  const message = w.need(sent, 'budget');
  const limits = w.need(message.limits, 'budget.limits');
  const used = w.need(message.used, 'budget.used');
  return {
    tenant: limits.tenant,
    user: limits.user,
    weight: limits.weight,
    ...limitsFromWire(limits),
    mode: budgetMode.toWord(limits.mode),
    atLimit: atLimit.toWord(limits.atLimit),
    version: w.toNumber(limits.version ?? 0n),
    used: {
      deviceMillis: w.toNumber(used.deviceMillis),
      deviceHoursDay: used.deviceHoursDay,
      deviceHoursMonth: used.deviceHoursMonth,
      microsDay: w.toNumber(used.microsDay),
      microsMonth: w.toNumber(used.microsMonth),
      heldMicros: w.toNumber(used.heldMicros),
    },
  };
}

export function usageRowToWire(row: UsageRow): MessageInitShape<typeof wire.UsageRowSchema> {
  return { ...row, costMicros: w.toBigint(row.costMicros), attempts: w.toBigint(row.attempts) };
}

export function usageRowFromWire(message: wire.UsageRow): UsageRow {
  return {
    key: message.key,
    deviceHours: message.deviceHours,
    cpuHours: message.cpuHours,
    costMicros: w.toNumber(message.costMicros),
    attempts: w.toNumber(message.attempts),
  };
}
