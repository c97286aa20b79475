/** Rows of budgets, accounts and the ledger, as one batch writes them. */
import type { Account } from '../model/account.ts';
import type { Budget } from '../model/budget.ts';
import type { LedgerEntry } from '../model/ledger.ts';
import type { UsageDay } from '../model/usageDay.ts';
import type { Changes } from '../state/changes.ts';
import type { Value, WriteBatch } from './contract.ts';
import { nothing, split } from './rows.ts';

export function encodeMoney(changes: Changes, tables: WriteBatch['tables']): void {
  if (changes.budgets.size > 0) {
    tables.budgets = split(changes.budgets, byWhom, nothing, budgetMutable);
  }
  if (changes.accounts.size > 0) {
    tables.accounts = split(changes.accounts, byWhom, nothing, accountMutable);
  }
  if (changes.usageDays.size > 0) {
    tables.usage_days = split(changes.usageDays, usageDayKey, nothing, usageDayMutable);
  }
  if (changes.ledger.length > 0) {
    const inserts: Value[] = [];
    for (const entry of changes.ledger) ledgerRow(inserts, entry);
    tables.ledger = { fresh: [], inserts, updates: [], deletes: [] };
  }
}

function byWhom(to: Value[], { tenant, user }: { tenant: string; user: string }): void {
  to.push(tenant, user);
}

function budgetMutable(to: Value[], budget: Budget): void {
  to.push(
    budget.weight,
    budget.deviceMillis,
    budget.deviceHoursPerDay,
    budget.deviceHoursPerMonth,
    budget.microsPerDay,
    budget.microsPerMonth,
    budget.mode,
    budget.atLimit,
    budget.version,
  );
}

function accountMutable(to: Value[], account: Account): void {
  const { usage } = account;
  to.push(
    usage.cpuMillis,
    usage.memoryMiB,
    usage.deviceMillis,
    usage.asOfMs,
    account.day,
    account.dayMicros,
    account.dayDeviceMs,
    account.month,
    account.monthMicros,
    account.monthDeviceMs,
    account.told,
    account.version,
  );
}

function usageDayKey(to: Value[], { day, tenant, user, pool }: UsageDay): void {
  to.push(day, tenant, user, pool);
}

function usageDayMutable(to: Value[], row: UsageDay): void {
  to.push(row.micros, row.deviceMs, row.cpuMs, row.attempts, row.version);
}

function ledgerRow(to: Value[], entry: LedgerEntry): void {
  to.push(
    entry.untilMs,
    entry.attempt,
    entry.n,
    entry.account,
    entry.tenant,
    entry.user,
    entry.pool,
    entry.micros,
    entry.deviceMs,
  );
}
