/**
 * How many calls of users may be under way at once, learned from how long they take: additive
 * increase, multiplicative decrease, the rule that shares the Internet's links. In each window in
 * which most calls took longer than wanted there is a standing queue somewhere behind us, and a
 * tenth fewer are let in; while the limit is reached and calls are quick, a few more are tried.
 * See docs/decisions/0014.
 */

/** Long enough for hundreds of calls of a busy gateway, short enough to stop a queue early. */
const WINDOW_MS = 100;
/** Never fewer: that many keep a controller with group commits busy. */
export const FEWEST_CALLS = 32;
const FIRST_LIMIT = 256;
const GROWTH = 1.05;
const DECREASE = 0.9;
/** With fewer calls than this nobody queues: what they take is what a call takes. */
const CALM_CALLS = 8;
const CALM_WEIGHT = 0.1;
/** A slow disk or database is no queue: so much longer than in calm is. */
const CALM_FACTOR = 3;
const LONGEST_WANTED_MS = 1000;
/** Those sent away come again spread over at most so many seconds. */
const MOST_SPREAD_SECONDS = 8;

export interface OverloadOptions {
  /** What a call may take before it counts as slow. */
  overloadMs: number;
  /** The most calls at once, however quick they are. */
  callsAtOnce: number;
}

export class Overload {
  inFlight = 0;
  /** Tenants with calls under way. */
  tenants = 0;
  readonly #options: OverloadOptions;
  #limit: number;
  #wantedMs: number;
  #calmMs = 0;
  #endsAtMs = 0;
  #ended = 0;
  #slow = 0;
  #tookMs = 0;
  #most = 0;
  #refused = 0;
  #spread = 1;
  #turn = 0;

  constructor(options: OverloadOptions) {
    this.#options = options;
    this.#limit = Math.min(FIRST_LIMIT, options.callsAtOnce);
    this.#wantedMs = options.overloadMs;
  }

  get limit(): number {
    return this.#limit;
  }

  get isFull(): boolean {
    return this.inFlight >= this.#limit;
  }

  /**
   * Whether a tenant with so many calls under way must wait. Below its even share it never must:
   * whoever is above is sent away until the total is below the limit again.
   */
  refuses(calls: number): boolean {
    return calls > 0 && this.inFlight >= this.#limit && calls >= this.#limit / this.tenants;
  }

  /** Counts one that was sent away; returns after how many seconds it should come again. */
  refused(): number {
    this.#refused++;
    this.#turn = (this.#turn + 1) % this.#spread;
    return 1 + this.#turn;
  }

  /** `calls`: the tenant's, this one not counted. */
  begin(calls: number): void {
    if (calls === 0) this.tenants++;
    if (++this.inFlight > this.#most) this.#most = this.inFlight;
  }

  /** `calls`: the tenant's that are left. */
  end(calls: number, tookMs: number, nowMs: number): void {
    if (calls === 0) this.tenants--;
    this.inFlight--;
    this.#ended++;
    this.#tookMs += tookMs;
    if (tookMs > this.#wantedMs) this.#slow++;
    if (nowMs >= this.#endsAtMs) this.#adjust(nowMs);
  }

  #adjust(nowMs: number): void {
    const isSlow = this.#slow * 2 > this.#ended;
    // What is slow while half of the places are free does not wait for a place.
    if (isSlow && this.#most * 2 < this.#limit) return this.#begin(nowMs);
    if (isSlow) this.#limit = Math.max(FEWEST_CALLS, this.#limit * DECREASE);
    else if (this.#most >= this.#limit) {
      this.#limit = Math.min(this.#options.callsAtOnce, this.#limit * GROWTH + 1);
    }
    this.#begin(nowMs);
  }

  /** The next window, with what there was to learn from the last one. */
  #begin(nowMs: number): void {
    if (this.#most <= CALM_CALLS) this.#learnCalm(this.#tookMs / this.#ended);
    const excess = Math.round(this.#refused / this.#ended);
    this.#spread = Math.min(MOST_SPREAD_SECONDS, Math.max(1, excess));
    this.#endsAtMs = nowMs + WINDOW_MS;
    this.#ended = this.#slow = this.#tookMs = this.#refused = 0;
    this.#most = this.inFlight;
  }

  #learnCalm(meanMs: number): void {
    this.#calmMs += (meanMs - this.#calmMs) * CALM_WEIGHT;
    const wantedMs = Math.max(this.#options.overloadMs, this.#calmMs * CALM_FACTOR);
    this.#wantedMs = Math.min(LONGEST_WANTED_MS, wantedMs);
  }
}
