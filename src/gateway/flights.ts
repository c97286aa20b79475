/**
 * Calls under way: counted, measured, and ended when they take too long. One sweep serves all
 * deadlines and one listener per response does the rest, so that a fast call pays almost nothing.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock, Timer } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import type { Pace } from './app.ts';
import type { GatewayLimits } from './limits.ts';
import type { GatewayMetrics, RouteMetrics } from './metrics.ts';

/** Deadlines are kept to within a quarter of themselves, at most this late. */
const SWEEP_MS = 250;
/** The client went away before it was answered (nginx's number for it). */
const CLIENT_CLOSED = 499;

const FLIGHT = Symbol('flight');
type TrackedResponse = ServerResponse & { [FLIGHT]: Flight };

interface Flight {
  lane: Lane;
  request: FastifyRequest;
  reply: FastifyReply;
  startedAt: number;
  /** The sweep it began in. */
  sweep: number;
}

export type FlightsOptions = {
  clock: Clock;
  log: Log;
  metrics: GatewayMetrics;
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
  names: { method: string; route: string };
  slowMs: number;
}

/** All calls of one route. */
export class Lane {
  readonly #options: LaneOptions;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  begin(request: FastifyRequest, reply: FastifyReply): void {
    const { flights, sweep } = this.#options;
    const startedAt = performance.now();
    const flight: Flight = { lane: this, request, reply, startedAt, sweep: sweep() };
    flights.add(flight);
    const response = reply.raw as TrackedResponse;
    response[FLIGHT] = flight;
    response.on('close', landed);
  }

  /** Once per call, whether it was answered, cut off by us or left by the client. */
  end(flight: Flight): void {
    const { flights, metrics, slowMs } = this.#options;
    flights.delete(flight);
    const response = flight.reply.raw;
    const status = response.headersSent ? response.statusCode : CLIENT_CLOSED;
    const tookMs = performance.now() - flight.startedAt;
    metrics.observe(status, tookMs);
    if (status >= 500 || tookMs > slowMs) this.#report(flight, status, tookMs);
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
