/**
 * Calls under way: counted, measured, and ended when they take too long. One sweep serves all
 * deadlines and one listener per response does the rest, so that a fast call pays almost nothing.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock, Timer } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { Principal } from '../model/token.ts';
import type { Pace } from './app.ts';
import type { GatewayLimits } from './limits.ts';
import type { TokenAccount } from './load/accounts.ts';
import type { Load } from './load/load.ts';
import { leftHeader } from './load/refusal.ts';
import type { GatewayMetrics, RouteMetrics } from './metrics.ts';

/** Deadlines are kept to within a quarter of themselves, at most this late. */
const SWEEP_MS = 250;
/** The client went away before it was answered (nginx's number for it). */
const CLIENT_CLOSED = 499;
const UNAUTHENTICATED = 401;

const FLIGHT = Symbol('flight');
type TrackedResponse = ServerResponse & { [FLIGHT]: Flight };

export interface Flight {
  lane: Lane;
  request: FastifyRequest;
  reply: FastifyReply;
  startedAt: number;
  /** The sweep it began in. */
  sweep: number;
  /** Who is charged with it, once that is known. */
  account: TokenAccount | undefined;
  isOver: boolean;
}

export type FlightsOptions = {
  clock: Clock;
  log: Log;
  metrics: GatewayMetrics;
  load: Load;
} & Pick<GatewayLimits, 'unaryTimeoutMs' | 'longPollTimeoutMs' | 'slowMs'>;

export class Flights {
  closing = false;
  readonly #options: FlightsOptions;
  /** In order of arrival, so that a sweep stops at the first that is young enough. */
  readonly #byPace: Record<Pace, Set<Flight>> = {
    unary: new Set(),
    longPoll: new Set(),
    stream: new Set(),
  };
  readonly #sweepMs: number;
  #sweep = 0;
  #timer: Timer | undefined;

  constructor(options: FlightsOptions) {
    this.#options = options;
    const shortestMs = Math.min(options.unaryTimeoutMs, options.longPollTimeoutMs);
    this.#sweepMs = Math.max(1, Math.min(SWEEP_MS, shortestMs / 4));
    this.#schedule();
  }

  get count(): number {
    const { unary, longPoll, stream } = this.#byPace;
    return unary.size + longPoll.size + stream.size;
  }

  lane(method: string, route: string, pace: Pace): Lane {
    const slowMs = pace === 'unary' ? this.#options.slowMs : Number.POSITIVE_INFINITY;
    return new Lane({
      flights: this.#byPace[pace],
      sweep: () => this.#sweep,
      metrics: this.#options.metrics.route(method, route),
      log: this.#options.log,
      load: this.#options.load,
      isUnary: pace === 'unary',
      names: { method, route },
      slowMs,
    });
  }

  /** New calls are refused and calls that only wait are answered now, so that a close is quick. */
  refuse(answer: () => DroverError): void {
    this.closing = true;
    for (const flight of this.#byPace.longPoll) {
      if (!flight.reply.sent) flight.reply.send(answer());
    }
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #schedule(): void {
    this.#timer = this.#options.clock.setTimer(this.#sweepMs, () => {
      this.#sweep++;
      this.#expire('unary', this.#options.unaryTimeoutMs);
      this.#expire('longPoll', this.#options.longPollTimeoutMs);
      this.#schedule();
    });
  }

  #expire(pace: Pace, timeoutMs: number): void {
    const newest = this.#sweep - Math.ceil(timeoutMs / this.#sweepMs);
    for (const flight of this.#byPace[pace]) {
      if (flight.sweep >= newest) return;
      this.#byPace[pace].delete(flight);
      if (!flight.reply.sent) flight.reply.send(timeoutError(timeoutMs));
    }
  }
}

function timeoutError(timeoutMs: number): DroverError {
  return new DroverError('TIMEOUT', `There was no answer within ${timeoutMs} ms`, {
    hint: 'It may still happen: look before you repeat it, or repeat with an Idempotency-Key.',
  });
}

interface LaneOptions {
  flights: Set<Flight>;
  sweep: () => number;
  metrics: RouteMetrics;
  log: Log;
  load: Load;
  isUnary: boolean;
  names: { method: string; route: string };
  slowMs: number;
}

/** All calls of one route. */
export class Lane {
  readonly #options: LaneOptions;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  begin(request: FastifyRequest, reply: FastifyReply): Flight {
    const { flights, sweep } = this.#options;
    const startedAt = performance.now();
    const flight: Flight = {
      lane: this,
      request,
      reply,
      startedAt,
      sweep: sweep(),
      account: undefined,
      isOver: false,
    };
    flights.add(flight);
    const response = reply.raw as TrackedResponse;
    response[FLIGHT] = flight;
    response.on('close', landed);
    return flight;
  }

  /** Charges a call to who makes it; throws where that one has too much under way already. */
  charge(flight: Flight, principal: Principal): void {
    // The client left while it was asked who it is: nobody would give the place back.
    if (flight.isOver) return;
    const { load, isUnary } = this.#options;
    flight.account = isUnary
      ? load.enterCall(principal, flight.startedAt)
      : load.enterStream(principal, flight.startedAt);
    const { requests, tenant } = flight.account;
    const low = requests.isLow(flight.startedAt) ? requests : tenant.requests;
    if (low.isLow(flight.startedAt)) flight.reply.header('ratelimit', leftHeader(low, 1));
  }

  /** Once per call, whether it was answered, cut off by us or left by the client. */
  end(flight: Flight): void {
    const { flights, metrics, load, slowMs } = this.#options;
    flights.delete(flight);
    flight.isOver = true;
    const response = flight.reply.raw;
    const status = response.headersSent ? response.statusCode : CLIENT_CLOSED;
    const nowMs = performance.now();
    const tookMs = nowMs - flight.startedAt;
    metrics.observe(status, tookMs);
    if (flight.account !== undefined) this.#discharge(flight.account, tookMs, nowMs);
    if (status === UNAUTHENTICATED) load.noteFailure(flight.request.raw, nowMs);
    else if (flight.request.bearer !== '' && status < 300) load.noteGood(flight.request.bearer);
    if (status >= 500 || tookMs > slowMs) this.#report(flight, status, tookMs);
  }

  #discharge(account: TokenAccount, tookMs: number, nowMs: number): void {
    const { load, isUnary } = this.#options;
    if (isUnary) load.leaveCall(account, tookMs, nowMs);
    else load.leaveStream(account);
  }

  #report(flight: Flight, status: number, tookMs: number): void {
    const { log, names } = this.#options;
    const fields = {
      requestId: flight.request.id,
      ...names,
      url: flight.request.url,
      status,
      tookMs: Math.round(tookMs),
    };
    log.warn(fields, status >= 500 ? 'request failed' : 'request was slow');
  }
}

function landed(this: ServerResponse): void {
  const flight = (this as TrackedResponse)[FLIGHT];
  flight.lane.end(flight);
}
