/** What providers bill for a pool's instances: its own account, beside what users are charged. */
import type { Instance } from '../model/instance.ts';
import type { PoolSpending } from '../model/poolSpending.ts';
import type { State } from './state.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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
  ...{ hourAtMs: 0, dayAtMs: 0, monthAtMs: 0 },
  ...{ hourMicros: 0, dayMicros: 0, monthMicros: 0, totalMicros: 0 },
};

/** The sums of the periods that it is now: those of earlier ones do not count. */
export function spendingNow(
  spending: PoolSpending | undefined,
  nowMs: number,
): Omit<PoolSpending, 'pool' | 'version'> {
  const {
    pool: _pool,
    version: _version,
    ...sums
  } = spending ?? { ...NOTHING, pool: '', version: 0 };
  const now = new Date(nowMs);
  const hourAtMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const dayAtMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const monthAtMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  if (sums.hourAtMs !== hourAtMs) Object.assign(sums, { hourAtMs, hourMicros: 0 });
  if (sums.dayAtMs !== dayAtMs) Object.assign(sums, { dayAtMs, dayMicros: 0 });
  if (sums.monthAtMs !== monthAtMs) Object.assign(sums, { monthAtMs, monthMicros: 0 });
  return sums;
}
