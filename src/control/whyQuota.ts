/** The hard budget that holds a job: whose, of what, how much of it is used. */
import { HOUR_MS } from '../core/money.ts';
import type { Budget } from '../model/budget.ts';
import { holdOf, leftOf, type LiveAccount } from '../state/accounts.ts';
import type { LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';
import { budgetView } from './budgets.ts';
import type { Hold } from './why.ts';

const MICROS = 1_000_000;

/** The user's own first: it is the one somebody can be asked to raise. */
export function heldByBudget(state: State, { job }: LiveJob, nowMs: number): Hold | null {
  const { device } = job.spec.resources;
  const members = job.spec.shape.kind === 'gang' ? job.spec.shape.size : 1;
  const deviceMillis = device ? members * device.count * device.share : 0;
  const needed = holdOf(deviceMillis, 0, job.spec.timeLimitMs);
  for (const account of state.accounts.both(job.tenant, job.owner)) {
    const { budget } = account;
    if (budget?.mode !== 'hard') continue;
    const left = leftOf(account, nowMs);
    const limits = limitsOf(account, budget, nowMs);
    if (left.deviceMillis !== null && needed.deviceMillis > left.deviceMillis) {
      const more = needed.deviceMillis > (budget.deviceMillis ?? 0);
      const when = more ? 'it asks for more than that' : 'it starts when other work has ended';
      return held(account, limits.devices, when);
    }
    if (left.deviceMs !== null && needed.deviceMs > left.deviceMs) {
      return held(account, limits.hours, 'it starts with the next day or month');
    }
    if (left.micros !== null && left.micros <= 0) {
      return held(account, limits.money, 'it starts with the next day or month');
    }
  }
  return null;
}

/** In devices, hours and whole units of money. */
type Limit = [what: string, limit: number | null, used: number];

function limitsOf(account: LiveAccount, budget: Budget, nowMs: number) {
  const { used } = budgetView(account, budget, nowMs);
  const { deviceMillis, deviceMs, micros } = account.held;
  const heldHours = deviceMs / HOUR_MS;
  const whole = (amount: number | null): number | null => amount && amount / MICROS;
  const devices: Limit[] = [
    ['devices', budget.deviceMillis && budget.deviceMillis / 1000, deviceMillis / 1000],
  ];
  const hours: Limit[] = [
    ['device hours of today', budget.deviceHoursPerDay, used.deviceHoursDay + heldHours],
    ['device hours of this month', budget.deviceHoursPerMonth, used.deviceHoursMonth + heldHours],
  ];
  const money: Limit[] = [
    ['money of today', whole(budget.microsPerDay), (used.microsDay + micros) / MICROS],
    ['money of this month', whole(budget.microsPerMonth), (used.microsMonth + micros) / MICROS],
  ];
  return { devices, hours, money };
}

/** Of several limits of one kind, the one of which least is left. */
function held({ account }: LiveAccount, limits: Limit[], when: string): Hold {
  const { tenant, user } = account;
  const left = ([, limit, used]: Limit): number =>
    limit === null ? Number.POSITIVE_INFINITY : limit - used;
  const [what, limit, used] = limits.toSorted((a, b) => left(a) - left(b))[0] ?? ['', null, 0];
  const whose = user ? `user ${user} of tenant ${tenant}` : `tenant ${tenant}`;
  return {
    code: 'QUOTA',
    sentence: `${whose} has too little left of its ${what}; ${when}`,
    quota: { tenant, user, what, limit: limit ?? 0, used },
    suggestions: [`raise it: drover budget ${user ? `${tenant}/${user}` : tenant} --set …`],
  };
}
