/** How much of a budget is used, and which of its levels people were told of already. */
import { HOUR_MS } from '../core/money.ts';
import type { Account } from '../model/account.ts';
import type { Budget } from '../model/budget.ts';
import type { LiveAccount } from './accounts.ts';
import { tellOfBudget } from './notices.ts';
import type { State } from './state.ts';

/** In percent, highest first. */
const LEVELS = [100, 80, 50] as const;

interface Limit {
  /** Begins with its period, so that a new one forgets what was told in the last. */
  name: 'day-money' | 'day-hours' | 'month-money' | 'month-hours';
  limit: number | null;
  used: number;
  held: number;
}

/** After a charge: each level once for each budget, limit and period. */
export function tellLevels(state: State, live: LiveAccount, nowMs: number): void {
  const { account, budget } = live;
  if (!budget || state.notices.defaultsOf(account.tenant).length === 0) return;
  for (const limit of limitsOf(live, budget)) {
    const level = levelOf(limit, budget);
    if (level <= toldOf(account, limit.name)) continue;
    remember(account, limit.name, level);
    const { tenant, user } = account;
    const [period = '', unit = ''] = limit.name.split('-');
    const scale = unit === 'money' ? 1_000_000 : HOUR_MS;
    const [used, most] = [limit.used / scale, (limit.limit ?? 0) / scale];
    tellOfBudget(state, tenant, { user, period, unit, percent: level, used, limit: most }, nowMs);
  }
}

function limitsOf({ account, held }: LiveAccount, budget: Budget): Limit[] {
  const ms = (hours: number | null): number | null => hours && hours * HOUR_MS;
  const money = { held: held.micros };
  const hours = { held: held.deviceMs };
  return [
    { name: 'day-money', limit: budget.microsPerDay, used: account.dayMicros, ...money },
    { name: 'month-money', limit: budget.microsPerMonth, used: account.monthMicros, ...money },
    { name: 'day-hours', limit: ms(budget.deviceHoursPerDay), used: account.dayDeviceMs, ...hours },
    {
      name: 'month-hours',
      limit: ms(budget.deviceHoursPerMonth),
      used: account.monthDeviceMs,
      ...hours,
    },
  ];
}

/** Where work is stopped at the limit, that is when what is set aside reaches it. */
function levelOf({ limit, used, held }: Limit, { atLimit }: Budget): number {
  if (limit === null || limit <= 0) return 0;
  if (atLimit === 'stop' && used + held > limit) return 100;
  return LEVELS.find((level) => used * 100 >= limit * level) ?? 0;
}

/** `day-money:80 month-hours:50` */
function toldOf({ told }: Account, name: string): number {
  const found = told.split(' ').find((word) => word.startsWith(`${name}:`));
  return found ? Number(found.slice(name.length + 1)) : 0;
}

function remember(account: Account, name: string, level: number): void {
  const others = account.told.split(' ').filter((word) => word && !word.startsWith(`${name}:`));
  account.told = [...others, `${name}:${level}`].join(' ');
}
