/** drover run --plan: where a job would go, when, and what it would cost. Nothing is submitted. */
import type { PlanView } from '../protocol/budgets.ts';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import type { CommandContext } from './command.ts';
import { shortDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { showMoney } from './money.ts';
import { printable } from './table.ts';

export async function showPlan(context: CommandContext, spec: SubmittedSpec): Promise<number> {
  const plan = await context.client().plan(spec);
  const code = plan.never === null ? EXIT.ok : EXIT.unschedulable;
  if (context.json) {
    await context.printJson(plan);
    return code;
  }
  const lines =
    plan.never === null
      ? plan.options.map((option) => optionLine(option, context.io.now()))
      : [`nowhere: ${plan.never}`];
  await context.print(lines.map(printable).join('\n'));
  return code;
}

/** pool A: starts in 6h, free. pool B: now, 4.10. */
function optionLine(option: PlanView['options'][number], nowMs: number): string {
  const parts = [start(option, nowMs), price(option)];
  return `pool ${option.pool}: ${parts.join(', ')} (${option.reason})`;
}

function start({ startsAtMs, worker }: PlanView['options'][number], nowMs: number): string {
  if (startsAtMs === null) return 'starts later';
  if (startsAtMs > nowMs) return `starts in ${shortDuration(startsAtMs - nowMs)}`;
  return worker ? `now on ${worker}` : 'now';
}

function price({ pricePerHourMicros, costMicros }: PlanView['options'][number]): string {
  if (pricePerHourMicros === 0) return 'free';
  const perHour = `${showMoney(pricePerHourMicros)} an hour`;
  return costMicros === null ? perHour : `${showMoney(costMicros)} at most, ${perHour}`;
}
