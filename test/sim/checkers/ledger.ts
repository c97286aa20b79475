/**
 * I5: every attempt is charged for its time exactly once, a host's fault costs nothing, the ledger
 * sums to 0, and accounts and jobs are the sums of their entries.
 */
import type { PoolPolicy } from '../../../src/core/placement/admission.ts';
import { unpackSpec } from '../../../src/model/spec.ts';
import type { AccountRow, AttemptRow, JobRow, LedgerRow } from '../../../src/store/database.ts';
import { accountKey, rowAccountKey, type Commit, type Mirror } from './mirror.ts';
import { must } from './violation.ts';

interface Charged {
  entries: number;
  micros: number;
  deviceMs: number;
}

type Page = Pick<
  AccountRow,
  'day' | 'day_micros' | 'day_device_ms' | 'month' | 'month_micros' | 'month_device_ms'
>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A cost is rounded down; whoever multiplies in another order may be one millionth off. */
const ROUNDING = 1;

export class LedgerChecker {
  readonly #mirror: Mirror;
  readonly #pools: readonly PoolPolicy[];
  readonly #charged = new Map<string, Charged>();
  readonly #spent = new Map<string, number>();
  readonly #pages = new Map<string, Page>();
  readonly #used = new Map<string, number>();

  constructor(mirror: Mirror, pools: readonly PoolPolicy[]) {
    this.#mirror = mirror;
    this.#pools = pools;
  }

  committed({ ledger, attempts, accounts, jobs, usageDays }: Commit): void {
    let micros = 0;
    let deviceMs = 0;
    for (const entry of ledger) {
      micros += entry.micros;
      deviceMs += entry.device_ms;
      if (entry.account.startsWith('user/')) this.#paid(entry);
    }
    must(micros === 0, 'I5', () => `a batch adds ${micros} to the ledger's sum`);
    must(deviceMs === 0, 'I5', () => `a batch adds ${deviceMs} ms to the ledger's sum`);
    for (const { attempt } of ledger) this.#checkAttempt(this.#mirror.attempt(attempt), attempt);
    for (const { before, row } of attempts) {
      if (!before) this.#checkPrice(row);
      this.#checkAttempt(row, row.uid);
    }
    for (const { row } of accounts) this.#checkAccount(row);
    for (const { before, row } of usageDays) this.#use(row, row.micros - (before?.micros ?? 0));
    for (const { row } of usageDays) {
      const sum = this.#used.get(useKey(row)) ?? 0;
      must(sum === 0, 'I5', () => `usage of ${useKey(row)} is ${sum} off the ledger`);
    }
    for (const { row } of jobs) {
      const spent = this.#spent.get(row.id) ?? 0;
      const right = row.spent_micros === spent;
      must(right, 'I5', () => `job ${row.id} has spent ${row.spent_micros}, the ledger: ${spent}`);
    }
  }

  #paid(entry: LedgerRow): void {
    const { attempt, n, tenant, user_name: user } = entry;
    const job = this.#jobOf(attempt);
    const mine = job?.tenant === tenant && job.owner === user;
    must(mine, 'I5', () => `${tenant}/${user} pays for ${attempt}, which is not theirs`);
    const charged = this.#charged.get(attempt) ?? { entries: 0, micros: 0, deviceMs: 0 };
    must(n === charged.entries + 1, 'I5', () => `charge ${n} of ${attempt} twice or out of order`);
    charged.entries = n;
    charged.micros += entry.micros;
    charged.deviceMs += entry.device_ms;
    this.#charged.set(attempt, charged);
    this.#use(entry, -entry.micros);
    if (job) this.#spent.set(job.id, (this.#spent.get(job.id) ?? 0) + entry.micros);
    this.#enter(accountKey(tenant, user), entry);
    this.#enter(accountKey(tenant, ''), entry);
  }

  /** What the days of a pool say less what the ledger says: 0 when both are told. */
  #use(of: UseOf, micros: number): void {
    this.#used.set(useKey(of), (this.#used.get(useKey(of)) ?? 0) + micros);
  }

  #enter(key: string, { micros, device_ms: deviceMs, until_ms: atMs }: LedgerRow): void {
    const day = Math.floor(atMs / DAY_MS);
    const date = new Date(atMs);
    const month = date.getUTCFullYear() * 12 + date.getUTCMonth();
    const page = this.#pages.get(key) ?? blank(day, month);
    if (page.day !== day) Object.assign(page, { day, day_micros: 0, day_device_ms: 0 });
    if (page.month !== month) Object.assign(page, { month, month_micros: 0, month_device_ms: 0 });
    page.day_micros += micros;
    page.day_device_ms += deviceMs;
    page.month_micros += micros;
    page.month_device_ms += deviceMs;
    this.#pages.set(key, page);
  }

  #checkAccount(row: AccountRow): void {
    const page = this.#pages.get(rowAccountKey(row)) ?? blank(row.day, row.month);
    for (const column in page) {
      const [known, told] = [page[column as keyof Page], row[column as keyof Page]];
      const who = rowAccountKey(row);
      must(known === told, 'I5', () => `account ${who}: ${column} ${told}, the ledger: ${known}`);
    }
  }

  #checkPrice(row: AttemptRow): void {
    const { cpuMillis, deviceMillis } = this.#sizeOf(row);
    const name = this.#mirror.workers.get(row.worker)?.pool;
    const pool = this.#pools.find((one) => one.name === name);
    const { deviceHourMicros = 0, cpuHourMicros = 0 } = pool ?? {};
    const price = (deviceMillis * deviceHourMicros + cpuMillis * cpuHourMicros) / 1000;
    const right = Math.round(price) === row.price_micros;
    must(right, 'I5', () => `${row.uid} costs ${row.price_micros} an hour, its pool says ${price}`);
  }

  #checkAttempt(row: AttemptRow | undefined, uid: string): void {
    if (!row) return must(false, 'I5', () => `there is a charge of ${uid}, which is not known`);
    const { entries, micros, deviceMs } = this.#charged.get(uid) ?? NOTHING;
    const told = `${row.charges} charges of ${row.charged_micros} and ${row.charged_device_ms} ms`;
    const known = `${entries} charges of ${micros} and ${deviceMs} ms`;
    must(told === known, 'I5', () => `${uid} has ${told}, the ledger ${known}`);
    if (row.state !== 'ENDED') return;
    // Time on a machine that failed is not the user's to pay.
    const billed = row.cause === 'lost' || row.started_at_ms === null ? null : row;
    const ms = billed ? Math.max(0, (row.ended_at_ms ?? 0) - (row.started_at_ms ?? 0)) : 0;
    const cost = Math.floor((row.price_micros * ms) / HOUR_MS);
    const time = Math.floor((this.#sizeOf(row).deviceMillis * ms) / 1000);
    const fair = Math.abs(cost - micros) <= ROUNDING && time === deviceMs;
    must(fair, 'I5', () => `${uid} (${row.cause}) ran ${ms} ms: ${cost}, was charged ${micros}`);
  }

  #sizeOf({ job }: AttemptRow): { cpuMillis: number; deviceMillis: number } {
    const { resources } = unpackSpec(this.#mirror.jobs.get(job)?.spec ?? '{}');
    const { cpuMillis, device } = resources;
    return { cpuMillis, deviceMillis: device ? device.count * device.share : 0 };
  }

  #jobOf(uid: string): JobRow | undefined {
    return this.#mirror.jobs.get(uid.slice(0, uid.indexOf('.')));
  }
}

type UseOf = Pick<LedgerRow, 'tenant' | 'user_name' | 'pool'>;

function useKey({ tenant, user_name: user, pool }: UseOf): string {
  return `${tenant}/${user} in ${pool}`;
}

const NOTHING: Charged = { entries: 0, micros: 0, deviceMs: 0 };

function blank(day: number, month: number): Page {
  const nothing = { day_micros: 0, day_device_ms: 0, month_micros: 0, month_device_ms: 0 };
  return { day, month, ...nothing };
}
