/**
 * Who has how much: what tenants and their users hold, what they had, and so whose turn it is. The
 * share is by dominant resource, by weight, and forgets by half-lives.
 */
import { averageHeld } from '../usage.ts';
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid } from '../../model/ids.ts';
import type { FleetTotals } from '../placement/fleet.ts';
import type { PendingClass } from './classes.ts';
import type { PlannerAccount } from './view.ts';

const MIB = 2 ** 20;
/** History fades slowly: its weight is computed anew only so often. */
const FADE_STEP_MS = 60_000;

/** What is put on an account before it is asked for. */
export interface Hold {
  micros: number;
  deviceMs: number;
}

export class Account {
  readonly tenant: string;
  /** Empty: the whole tenant. */
  readonly user: string;
  /** Null: weight 1, no limit, no history. */
  row: PlannerAccount | null = null;
  readonly held: FleetTotals = { cpuMillis: 0, memoryMiB: 0, deviceMillis: 0 };
  /** Of what was planned since the row came, which does not know of it yet. */
  readonly #holds = new Map<AttemptUid, Hold>();
  #micros = 0;
  #deviceMs = 0;
  /** Classes that wait for this account's limits. */
  readonly waiting = new Set<PendingClass>();
  #had: FleetTotals = { cpuMillis: 0, memoryMiB: 0, deviceMillis: 0 };
  #fadedAtMs = Number.NaN;

  constructor(tenant: string, user: string) {
    this.tenant = tenant;
    this.user = user;
  }

  get deviceMsLeft(): number {
    return (this.row?.deviceMsLeft ?? Number.POSITIVE_INFINITY) - this.#deviceMs;
  }

  get microsLeft(): number {
    return (this.row?.microsLeft ?? Number.POSITIVE_INFINITY) - this.#micros;
  }

  get devicesLeft(): number {
    return (this.row?.deviceMillis ?? Number.POSITIVE_INFINITY) - this.held.deviceMillis;
  }

  set(row: PlannerAccount): void {
    this.row = row;
    this.#holds.clear();
    this.#micros = 0;
    this.#deviceMs = 0;
    this.#fadedAtMs = Number.NaN;
  }

  count(claim: Claim, sign: 1 | -1): void {
    this.held.cpuMillis += sign * claim.cpuMillis;
    this.held.memoryMiB += (sign * claim.memoryBytes) / MIB;
    this.held.deviceMillis += sign * claim.devices.length * claim.share;
  }

  hold(owner: AttemptUid, hold: Hold): void {
    if (!this.row) return;
    this.#holds.set(owner, hold);
    this.#micros += hold.micros;
    this.#deviceMs += hold.deviceMs;
  }

  release(owner: AttemptUid): void {
    const hold = this.#holds.get(owner);
    if (!hold) return;
    this.#holds.delete(owner);
    this.#micros -= hold.micros;
    this.#deviceMs -= hold.deviceMs;
  }

  /** What it holds and held on average of late, of what there is most of it has, by its weight. */
  share(totals: FleetTotals, nowMs: number, halfLifeMs: number): number {
    const step = Math.floor(nowMs / FADE_STEP_MS) * FADE_STEP_MS;
    if (step !== this.#fadedAtMs) this.#fade(step, halfLifeMs);
    const { held } = this;
    const had = this.#had;
    let share = part(held.deviceMillis + had.deviceMillis, totals.deviceMillis);
    share = Math.max(share, part(held.cpuMillis + had.cpuMillis, totals.cpuMillis));
    share = Math.max(share, part(held.memoryMiB + had.memoryMiB, totals.memoryMiB));
    return share / (this.row?.weight ?? 1);
  }

  #fade(nowMs: number, halfLifeMs: number): void {
    this.#fadedAtMs = nowMs;
    const usage = this.row?.usage;
    if (!usage) return;
    this.#had = averageHeld(usage, nowMs, halfLifeMs);
  }
}

/** A user's account with its tenant's: what the one takes counts on the other. */
export interface Owner {
  tenant: Account;
  user: Account;
}

export class Accounts {
  readonly #owners = new Map<string, Map<string, Owner>>();

  owner(tenant: string, user: string): Owner {
    let users = this.#owners.get(tenant);
    if (!users) {
      const whole = new Account(tenant, '');
      users = new Map([['', { tenant: whole, user: whole }]]);
      this.#owners.set(tenant, users);
    }
    let owner = users.get(user);
    if (!owner) {
      const whole = (users.get('') as Owner).tenant;
      owner = { tenant: whole, user: new Account(tenant, user) };
      users.set(user, owner);
    }
    return owner;
  }

  set(row: PlannerAccount): Account {
    const account = this.owner(row.tenant, row.user).user;
    account.set(row);
    return account;
  }
}

/** Of a resource that nobody has there is no share. */
function part(amount: number, total: number): number {
  return total > 0 ? amount / total : 0;
}
