/**
 * I7, what is allowed: nobody gets more than a hard budget leaves, whatever was planned, and no
 * more tasks of an array run than it asked for.
 */
import type { PoolPolicy } from '../../../src/core/placement/admission.ts';
import type { JobSpec } from '../../../src/model/job.ts';
import { unpackSpec } from '../../../src/model/spec.ts';
import type { AccountRow, BudgetRow, ClaimRow } from '../../../src/store/database.ts';
import { accountKey, rowAccountKey, type Commit, type Mirror } from './mirror.ts';
import { must } from './violation.ts';

interface Held {
  deviceMillis: number;
  deviceMs: number;
  micros: number;
}

/** What is certainly spent of a day or month when a batch's claims were made. */
type Spent = { micros: number; deviceMs: number };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export class QuotaChecker {
  readonly #mirror: Mirror;
  readonly #pools: readonly PoolPolicy[];
  /** By claim, what it sets aside and on which accounts. */
  readonly #claims = new Map<string, { held: Held; accounts: string[] }>();
  readonly #held = new Map<string, Held>();
  readonly #running = new Map<string, Set<string>>();
  readonly #specs = new Map<string, JobSpec>();

  constructor(mirror: Mirror, pools: readonly PoolPolicy[]) {
    this.#mirror = mirror;
    this.#pools = pools;
  }

  committed(commit: Commit): void {
    // A task that is nominated in one place and assigned in another has no more than before.
    const nominated = new Map<string, Held>();
    for (const { owner, state } of commit.freed) {
      const held = this.#claims.get(owner)?.held;
      if (held && state === 'NOMINATED') nominated.set(taskOf(owner), held);
      this.#free(owner);
    }
    const grown = new Map<string, Held>();
    for (const { before, row } of commit.claims) {
      if (!before) this.#hold(row, grown, nominated.get(taskOf(row.owner)) ?? nothing());
    }
    const changed = new Set([
      ...commit.budgets.map(({ row }) => rowAccountKey(row)),
      ...commit.budgetsGone.map(rowAccountKey),
    ]);
    for (const [key, more] of grown) {
      const budget = this.#mirror.budgets.get(key);
      // Several changes may be in one batch: which of them came before the claim is not told.
      if (budget?.mode === 'hard' && !changed.has(key)) this.#check(key, budget, more, commit);
    }
    this.#countArrays(commit);
  }

  /** Of each thing only where there is more of it: a limit may have been set below what is held. */
  #check(key: string, budget: BudgetRow, more: Held, commit: Commit): void {
    const held = this.#held.get(key) ?? nothing();
    const { day, month } = this.#spent(key, commit);
    const within = (what: keyof Held, limit: number | null, spent: number): void => {
      const used = held[what] + spent;
      const right = limit === null || more[what] === 0 || used <= limit;
      must(right, 'I7', () => `${key} has ${used} of ${limit} ${what}`);
    };
    const hours = (limit: number | null): number | null => limit && limit * HOUR_MS;
    within('deviceMillis', budget.device_millis, 0);
    within('micros', budget.micros_per_day, day.micros);
    within('micros', budget.micros_per_month, month.micros);
    within('deviceMs', hours(budget.device_hours_per_day), day.deviceMs);
    within('deviceMs', hours(budget.device_hours_per_month), month.deviceMs);
  }

  /** Charges of the same batch may have come later, so only what was there before counts. */
  #spent(key: string, { accounts, ledger, events }: Commit): { day: Spent; month: Spent } {
    const change = accounts.find(({ row }) => rowAccountKey(row) === key);
    const rows = change ? [change.before, change.row] : [this.#mirror.accounts.get(key)];
    const days = new Set(events.map(({ at_ms: atMs }) => Math.floor(atMs / DAY_MS)));
    const [before] = rows;
    const sameDay = before && rows.every((row) => row && days.size === 1 && days.has(row.day));
    // A month turns only with a day.
    if (!before || !sameDay || rows.some((row) => row?.month !== before.month)) {
      return { day: { micros: 0, deviceMs: 0 }, month: { micros: 0, deviceMs: 0 } };
    }
    const refunds = { micros: 0, deviceMs: 0 };
    for (const { micros, device_ms: deviceMs, account } of ledger) {
      if (!account.startsWith('user/')) continue;
      refunds.micros += Math.min(0, micros);
      refunds.deviceMs += Math.min(0, deviceMs);
    }
    return spentOf(before, refunds);
  }

  #hold(claim: ClaimRow, grown: Map<string, Held>, had: Held): void {
    const job = this.#mirror.jobs.get(jobOf(claim.owner));
    if (!job) return must(false, 'I7', () => `claim ${claim.owner} is of no job`);
    const held = this.#sizeOf(claim, this.#specOf(job.id).timeLimitMs);
    const accounts = [accountKey(job.tenant, job.owner), accountKey(job.tenant, '')];
    this.#claims.set(claim.owner, { held, accounts });
    for (const key of accounts) {
      const sum = this.#held.get(key) ?? nothing();
      this.#held.set(key, sum);
      add(sum, held, 1);
      const more = grown.get(key) ?? nothing();
      grown.set(key, more);
      more.deviceMillis += Math.max(0, held.deviceMillis - had.deviceMillis);
      more.deviceMs += Math.max(0, held.deviceMs - had.deviceMs);
      more.micros += Math.max(0, held.micros - had.micros);
    }
  }

  #free(owner: string): void {
    const known = this.#claims.get(owner);
    this.#claims.delete(owner);
    for (const key of known?.accounts ?? []) {
      add(this.#held.get(key) ?? nothing(), known?.held ?? nothing(), -1);
    }
  }

  #sizeOf(claim: ClaimRow, timeLimitMs: number): Held {
    const deviceMillis = (JSON.parse(claim.devices) as number[]).length * claim.share;
    const name = this.#mirror.workers.get(claim.worker)?.pool;
    const pool = this.#pools.find((one) => one.name === name);
    const { deviceHourMicros = 0, cpuHourMicros = 0 } = pool ?? {};
    const price = (deviceMillis * deviceHourMicros + claim.cpu_millis * cpuHourMicros) / 1000;
    const ms = timeLimitMs > 0 ? Math.min(timeLimitMs, HOUR_MS) : HOUR_MS;
    // Rounded in the user's favour: the last millionth is not what this looks for.
    const micros = Math.floor((Math.round(price) * ms) / HOUR_MS);
    return { deviceMillis, deviceMs: Math.floor((deviceMillis * ms) / 1000), micros };
  }

  #countArrays({ attempts }: Commit): void {
    for (const { row } of attempts) {
      const { shape } = this.#specOf(row.job);
      if (shape.kind !== 'array' || shape.limit === 0) continue;
      const running = this.#running.get(row.job) ?? new Set();
      this.#running.set(row.job, running);
      if (row.state === 'ENDED') running.delete(row.uid);
      else running.add(row.uid);
    }
    for (const { row } of attempts) {
      const { shape } = this.#specOf(row.job);
      const limit = shape.kind === 'array' ? shape.limit : 0;
      const count = this.#running.get(row.job)?.size ?? 0;
      must(count <= limit || limit === 0, 'I7', () => `${count} of ${row.job} run, not ${limit}`);
    }
  }

  #specOf(job: string): JobSpec {
    let spec = this.#specs.get(job);
    if (!spec) {
      spec = unpackSpec(this.#mirror.jobs.get(job)?.spec ?? '{}');
      this.#specs.set(job, spec);
    }
    return spec;
  }
}

function spentOf(row: AccountRow, refunds: Spent): { day: Spent; month: Spent } {
  const least = (micros: number, deviceMs: number): Spent => ({
    micros: micros + refunds.micros,
    deviceMs: deviceMs + refunds.deviceMs,
  });
  return {
    day: least(row.day_micros, row.day_device_ms),
    month: least(row.month_micros, row.month_device_ms),
  };
}

function jobOf(uid: string): string {
  return uid.slice(0, uid.indexOf('.'));
}

/** JOB.INDEX of JOB.INDEX.N.RANDOM. */
function taskOf(uid: string): string {
  return uid.split('.').slice(0, 2).join('.');
}

function nothing(): Held {
  return { deviceMillis: 0, deviceMs: 0, micros: 0 };
}

function add(sum: Held, held: Held, sign: 1 | -1): void {
  sum.deviceMillis += sign * held.deviceMillis;
  sum.deviceMs += sign * held.deviceMs;
  sum.micros += sign * held.micros;
}
