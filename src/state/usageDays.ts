/** Sums of use by day, tenant, user and pool: one row each, however many attempts. */
import { dayOf } from '../core/money.ts';
import type { UsageDay } from '../model/usageDay.ts';
import type { Changes } from './changes.ts';

export type Used = Pick<UsageDay, 'micros' | 'deviceMs' | 'cpuMs' | 'attempts'>;

export class UsageDays {
  #day = 0;
  readonly #rows = new Map<string, UsageDay>();

  /** Rows of the newest day that was written. */
  constructor(rows: readonly UsageDay[]) {
    for (const row of rows) this.#keep(row);
  }

  add(
    changes: Changes,
    who: Pick<UsageDay, 'tenant' | 'user' | 'pool'>,
    used: Used,
    nowMs: number,
  ): void {
    // Never an earlier day, whatever the clock says: its rows are not here any more.
    this.#turn(Math.max(this.#day, dayOf(nowMs)));
    const key = keyOf(who);
    let row = this.#rows.get(key);
    if (!row) {
      const none = { micros: 0, deviceMs: 0, cpuMs: 0, attempts: 0, version: 0 };
      row = { day: this.#day, tenant: who.tenant, user: who.user, pool: who.pool, ...none };
      this.#rows.set(key, row);
    }
    row.micros += used.micros;
    row.deviceMs += used.deviceMs;
    row.cpuMs += used.cpuMs;
    row.attempts += used.attempts;
    if (row.version++ === 0) changes.usageDays.set(row, 'insert');
    else if (!changes.usageDays.has(row)) changes.usageDays.set(row, 'update');
  }

  all(): Iterable<UsageDay> {
    return this.#rows.values();
  }

  #keep(row: UsageDay): void {
    this.#turn(row.day);
    this.#rows.set(keyOf(row), row);
  }

  #turn(day: number): void {
    if (day === this.#day) return;
    this.#day = day;
    this.#rows.clear();
  }
}

function keyOf({ tenant, user, pool }: Pick<UsageDay, 'tenant' | 'user' | 'pool'>): string {
  return `${tenant}\n${user}\n${pool}`;
}
