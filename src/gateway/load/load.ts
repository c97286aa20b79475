/**
 * Who may come in now: rates and numbers at once for each tenant and token, and the overload rule
 * for all users together. Agents are never asked here: a fleet must not be lost because somebody
 * polls. Nothing is allocated and no timer is set for a call that is let in.
 */
import type { IncomingMessage } from 'node:http';
import { limitSettings, type LimitSettings } from '../../model/limitSettings.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { Accounts, type Account, type TokenAccount } from './accounts.ts';
import { addressOf, Failures } from './failures.ts';
import { Overload } from './overload.ts';
import { LimitReached, REASONS, secondsOf, type Reason, type Refusal } from './refusal.ts';

/** After a refusal the next ones are looked for before routing for so long: they come in crowds. */
const ALERT_MS = 1000;
/** More than a fleet of one gateway has; then they are learned anew. */
const MOST_GOOD = 50_000;
const BEARER = 'Bearer ';
/** Nobody knows when somebody else's call ends; most take far less. */
const SOON_SECONDS = 1;

export class Load {
  readonly overload: Overload;
  readonly failures: Failures;
  readonly refusals = Object.fromEntries(REASONS.map((reason) => [reason, 0])) as Record<
    Reason,
    number
  >;
  readonly #accounts: Accounts;
  /** Tokens that were good and that no cache keeps: of agents, and of upgrades. */
  readonly #good = new Set<string>();
  #alertUntilMs = 0;

  constructor(settings: Partial<LimitSettings> = {}) {
    const all = { ...limitSettings.parse({}), ...settings };
    this.overload = new Overload(all);
    this.failures = new Failures(all.rateFailuresPerAddress);
    this.#accounts = new Accounts(all);
  }

  /** Whether somebody was refused lately, or would be now. */
  isAlert(): boolean {
    if (this.overload.isFull) return true;
    if (this.#alertUntilMs === 0) return false;
    if (performance.now() < this.#alertUntilMs) return true;
    this.#alertUntilMs = 0;
    return false;
  }

  enterCall(principal: Principal, nowMs: number): TokenAccount {
    const account = this.#accounts.of(principal, nowMs);
    const refused = this.refuseAny(account, nowMs) ?? this.#refuseCall(account, nowMs);
    if (refused !== undefined) throw new LimitReached(refused);
    const { tenant } = account;
    account.requests.spend(1);
    tenant.requests.spend(1);
    this.overload.begin(tenant.calls);
    account.calls++;
    tenant.calls++;
    return account;
  }

  leaveCall(account: TokenAccount, tookMs: number, nowMs: number): void {
    account.calls--;
    account.tenant.calls--;
    this.overload.end(account.tenant.calls, tookMs, nowMs);
  }

  /** Streams, long polls and tunnels: they may stay for hours and count apart from calls. */
  enterStream(principal: Principal, nowMs: number): TokenAccount {
    const account = this.#accounts.of(principal, nowMs);
    const refused = this.refuseAny(account, nowMs) ?? this.#refuseStream(account, nowMs);
    if (refused !== undefined) throw new LimitReached(refused);
    account.requests.spend(1);
    account.tenant.requests.spend(1);
    account.streams++;
    account.tenant.streams++;
    return account;
  }

  leaveStream(account: TokenAccount): void {
    account.streams--;
    account.tenant.streams--;
  }

  accountOf(principal: Principal, nowMs: number): TokenAccount {
    return this.#accounts.of(principal, nowMs);
  }

  /** Why nothing of this caller can come in now, be it a call or a stream. */
  refuseAny(account: TokenAccount, nowMs: number): Refusal | undefined {
    if (this.overload.refuses(account.tenant.calls)) return this.refuseExcess(nowMs);
    return this.#refuseRate(account, nowMs);
  }

  /** While all places are taken: of those above their share, and of who shows no token. */
  refuseExcess(nowMs: number): Refusal {
    return this.#refused(nowMs, {
      reason: 'overload',
      detail: 'More is asked of this server than it can do at once',
      hint: 'Wait as long as Retry-After says, and try again; nothing was done.',
      retryAfterSeconds: this.overload.refused(),
    });
  }

  /** Of an address that failed too often; undefined where it may try. */
  refuseAddress(address: string, nowMs: number): Refusal | undefined {
    const waitMs = this.failures.waitMs(address, nowMs);
    if (waitMs === 0) return undefined;
    return this.#refused(nowMs, {
      reason: 'failures',
      detail: `Too many tokens from ${address} were wrong`,
      hint: 'Check the token; `drover login URL` asks for a new one.',
      retryAfterSeconds: secondsOf(waitMs),
    });
  }

  /** A token was wrong. Who sent none, or one that was good before, has guessed nothing. */
  noteFailure(request: IncomingMessage, nowMs: number): void {
    const header = request.headers.authorization;
    if (header === undefined || this.wasGood(header.slice(BEARER.length))) return;
    this.failures.note(addressOf(request), nowMs);
  }

  /** Of an agent or an upgrade: it is let through whatever others at its address do. */
  noteGood(bearer: string): void {
    if (this.#good.size >= MOST_GOOD && !this.#good.has(bearer)) this.#good.clear();
    this.#good.add(bearer);
  }

  /** Throws where an address failed too often and this token was never good here. */
  checkAddress(request: IncomingMessage, isKnown: boolean): void {
    if (isKnown || this.failures.size === 0) return;
    const refused = this.refuseAddress(addressOf(request), performance.now());
    if (refused !== undefined) throw new LimitReached(refused);
  }

  wasGood(bearer: string): boolean {
    return this.#good.has(bearer);
  }

  /** For streams that are no route of the gateway: tunnels. Returns what gives the place back. */
  holdStream(principal: Principal): () => void {
    const account = this.enterStream(principal, performance.now());
    return () => this.leaveStream(account);
  }

  /** Before jobs are handed on: how many there are is known only now. */
  takeJobs(principal: Principal, count: number, nowMs: number): void {
    const account = this.#accounts.of(principal, nowMs);
    const { tenant } = account;
    const own = account.jobs.waitMs(count, nowMs);
    const waitMs = Math.max(own, tenant.jobs.waitMs(count, nowMs));
    if (waitMs === 0) {
      account.jobs.spend(count);
      tenant.jobs.spend(count);
      return;
    }
    const one = own > 0 ? account : tenant;
    const refusal = this.#refused(nowMs, {
      reason: 'jobs',
      detail: `${nameOf(one)} may submit ${one.jobs.rate.perSecond} jobs a second`,
      hint: 'Wait as long as Retry-After says; an array is one job.',
      retryAfterSeconds: secondsOf(waitMs),
    });
    throw new LimitReached(refusal);
  }

  #refuseRate(account: TokenAccount, nowMs: number): Refusal | undefined {
    const own = account.requests.waitMs(1, nowMs);
    const waitMs = Math.max(own, account.tenant.requests.waitMs(1, nowMs));
    if (waitMs === 0) return undefined;
    const one = own > 0 ? account : account.tenant;
    return this.#refused(nowMs, {
      reason: 'rate',
      detail: `${nameOf(one)} may make ${one.requests.rate.perSecond} requests a second`,
      hint: 'Wait as long as Retry-After says; to wait for a job, GET /v1/jobs/{id}/wait.',
      retryAfterSeconds: secondsOf(waitMs),
      bucket: one.requests,
    });
  }

  #refuseCall(account: TokenAccount, nowMs: number): Refusal | undefined {
    const { tenant } = account;
    const isFull = account.calls >= account.mostCalls;
    if (!isFull && tenant.calls < tenant.mostCalls) return undefined;
    const full = isFull ? account : tenant;
    return this.#refused(nowMs, {
      reason: 'calls',
      detail: `${nameOf(full)} has ${full.mostCalls} calls under way, which is the most`,
      hint: 'Wait for some of them.',
      retryAfterSeconds: SOON_SECONDS,
    });
  }

  #refuseStream(account: TokenAccount, nowMs: number): Refusal | undefined {
    const { tenant } = account;
    const full = [account, tenant].find((one) => one.streams >= one.mostStreams);
    if (full === undefined) return undefined;
    return this.#refused(nowMs, {
      reason: 'streams',
      detail: `${nameOf(full)} has ${full.mostStreams} streams open, which is the most`,
      hint: 'Close some: follows, waits, downloads, sessions in tasks.',
      retryAfterSeconds: SOON_SECONDS,
    });
  }

  #refused(nowMs: number, refusal: Refusal): Refusal {
    this.refusals[refusal.reason]++;
    this.#alertUntilMs = nowMs + ALERT_MS;
    return refusal;
  }
}

function nameOf(account: Account): string {
  return 'tenant' in account ? 'This token' : `The tenant ${account.name}`;
}

/** The same coordinator, with submitted jobs counted: whichever route they came by. */
export function limitSubmits(coordinator: Coordinator, load: Load): Coordinator {
  return {
    ...coordinator,
    submit: (who, request) => {
      load.takeJobs(who, request.specs.length, performance.now());
      return coordinator.submit(who, request);
    },
  };
}
