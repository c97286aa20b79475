/** What each tenant and each token has under way and has used up. */
import type { LimitSettings } from '../../model/limitSettings.ts';
import type { Principal } from '../../model/token.ts';
import { Bucket } from './bucket.ts';

/** In place of 0 in the settings. */
const ANY_RATE = 1e12;
const ANY_NUMBER = Number.MAX_SAFE_INTEGER;
/** So many are kept before the idle ones are looked for; then twice as many as are left. */
const FEWEST_KEPT = 1000;

interface Allowed {
  requestsPerSecond: number;
  jobsPerSecond: number;
  calls: number;
  streams: number;
}

/** Of a tenant, or of one token of it. */
export interface Account {
  readonly name: string;
  readonly mostCalls: number;
  readonly mostStreams: number;
  readonly requests: Bucket;
  readonly jobs: Bucket;
  calls: number;
  streams: number;
}

export interface TenantAccount extends Account {
  /** Accounts of its tokens. */
  tokens: number;
}

export interface TokenAccount extends Account {
  readonly tenant: TenantAccount;
}

export class Accounts {
  readonly #settings: LimitSettings;
  readonly #tenants = new Map<string, TenantAccount>();
  readonly #tokens = new Map<string, TokenAccount>();
  #cleanAt = FEWEST_KEPT;

  constructor(settings: LimitSettings) {
    this.#settings = settings;
  }

  get size(): number {
    return this.#tokens.size;
  }

  of(principal: Principal, nowMs: number): TokenAccount {
    const known = this.#tokens.get(principal.token);
    if (known !== undefined && known.tenant.name === principal.tenant) return known;
    return this.#open(principal, nowMs);
  }

  #open({ token, tenant: name }: Principal, nowMs: number): TokenAccount {
    if (this.#tokens.size >= this.#cleanAt) this.#clean(nowMs);
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) {
      tenant = { ...this.#account(name, this.#ofTenant(name), nowMs), tokens: 0 };
      this.#tenants.set(name, tenant);
    }
    tenant.tokens++;
    const { rateRequestsPerToken, rateJobsPerToken, callsPerToken, streamsPerToken } =
      this.#settings;
    const allowed = {
      requestsPerSecond: rateRequestsPerToken,
      jobsPerSecond: rateJobsPerToken,
      calls: callsPerToken,
      streams: streamsPerToken,
    };
    const opened = { ...this.#account(token, allowed, nowMs), tenant };
    // An identity of an issuer may have moved to another tenant.
    const moved = this.#tokens.get(token);
    if (moved !== undefined) moved.tenant.tokens--;
    this.#tokens.set(token, opened);
    return opened;
  }

  #ofTenant(name: string): Allowed {
    const { tenants, ...settings } = this.#settings;
    const own = Object.hasOwn(tenants, name) ? tenants[name] : undefined;
    return {
      requestsPerSecond: own?.requestsPerSecond ?? settings.rateRequestsPerTenant,
      jobsPerSecond: own?.jobsPerSecond ?? settings.rateJobsPerTenant,
      calls: own?.calls ?? settings.callsPerTenant,
      streams: own?.streams ?? settings.streamsPerTenant,
    };
  }

  #account(name: string, allowed: Allowed, nowMs: number): Account {
    const bucket = (perSecond: number): Bucket => {
      const rate = perSecond || ANY_RATE;
      const burst = Math.max(1, rate * this.#settings.rateBurstSeconds);
      return new Bucket({ perSecond: rate, burst }, nowMs);
    };
    return {
      name,
      mostCalls: allowed.calls || ANY_NUMBER,
      mostStreams: allowed.streams || ANY_NUMBER,
      requests: bucket(allowed.requestsPerSecond),
      jobs: bucket(allowed.jobsPerSecond),
      calls: 0,
      streams: 0,
    };
  }

  /** What is idle and has its whole burst again is as good as new. */
  #clean(nowMs: number): void {
    for (const [token, account] of this.#tokens) {
      if (!isIdle(account, nowMs)) continue;
      this.#tokens.delete(token);
      account.tenant.tokens--;
    }
    for (const [name, account] of this.#tenants) {
      if (account.tokens === 0 && isIdle(account, nowMs)) this.#tenants.delete(name);
    }
    this.#cleanAt = Math.max(FEWEST_KEPT, this.#tokens.size * 2);
  }
}

function isIdle({ calls, streams, requests, jobs }: Account, nowMs: number): boolean {
  return calls === 0 && streams === 0 && requests.isFull(nowMs) && jobs.isFull(nowMs);
}
