/**
 * I17: what a pool is really charged in an hour, as its provider knows, stays within the pool's
 * limit, but for one billing quantum of its dearest machine.
 */
import type { PoolSettings } from '../../../src/model/poolSettings.ts';
import type { FakeAccount } from '../../../src/providers/fake/account.ts';
import { must } from './violation.ts';

const HOUR_MS = 3_600_000;
const MICROS = 1_000_000;

/** Whether so much was spent in some hour that no further machine could be afforded. */
export function checkSpent(account: FakeAccount, settings: PoolSettings): boolean {
  const { spendPerHour, billingQuantumMs } = settings;
  if (spendPerHour === 0) return false;
  const limitMicros = Math.round(spendPerHour * MICROS);
  let dearest = account.prices.hourMicros;
  const byHour = new Map<number, number>();
  for (const { atMs, micros, machine } of account.charges()) {
    dearest = Math.max(dearest, machine.priceHourMicros);
    const hour = Math.floor(atMs / HOUR_MS);
    byHour.set(hour, (byHour.get(hour) ?? 0) + micros);
  }
  const quantumMicros = Math.ceil((dearest * billingQuantumMs) / HOUR_MS);
  for (const [hour, micros] of byHour) {
    const over = micros - limitMicros;
    const told = `${micros} were charged in hour ${hour}, the limit is ${limitMicros}`;
    must(over <= quantumMicros, 'I17', () => `${told}, a quantum ${quantumMicros}`);
  }
  return [...byHour.values()].some((micros) => micros + account.prices.hourMicros > limitMicros);
}
