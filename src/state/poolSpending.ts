/** What providers bill for a pool's instances: its own account, beside what users are charged. */
import { dayOf, HOUR_MS, monthOf } from '../core/money.ts';
import type { Instance } from '../model/instance.ts';
import type { PoolSpending } from '../model/poolSpending.ts';
import type { State } from './state.ts';

export function spend(state: State, { pool }: Instance, micros: number, nowMs: number): void {
  let spending = state.machines.spending.get(pool);
  if (!spending) {
    spending = { pool, ...NOTHING, version: 1 };
    state.machines.spending.set(pool, spending);
    state.changes.spending.set(spending, 'insert');
  } else {
    spending.version++;
    if (!state.changes.spending.has(spending)) state.changes.spending.set(spending, 'update');
  }
  Object.assign(spending, spendingNow(spending, nowMs));
  spending.hourMicros += micros;
  spending.dayMicros += micros;
  spending.monthMicros += micros;
  spending.totalMicros += micros;
}

const NOTHING = {
  ...{ hour: 0, day: 0, month: 0 },
  ...{ hourMicros: 0, dayMicros: 0, monthMicros: 0, totalMicros: 0 },
};

/** The sums of the periods that it is now: those of earlier ones do not count. */
export function spendingNow(
  spending: PoolSpending | undefined,
  nowMs: number,
): Omit<PoolSpending, 'pool' | 'version'> {
  const sums = { ...NOTHING, ...spending };
  const hour = Math.floor(nowMs / HOUR_MS);
  const day = dayOf(nowMs);
  const month = monthOf(nowMs);
  return {
    ...{ hour, day, month, totalMicros: sums.totalMicros },
    hourMicros: sums.hour === hour ? sums.hourMicros : 0,
    dayMicros: sums.day === day ? sums.dayMicros : 0,
    monthMicros: sums.month === month ? sums.monthMicros : 0,
  };
}
