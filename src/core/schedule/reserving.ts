/**
 * Keeping places: for what has waited too long, and for the first of a band that does not fit.
 * Nobody else is given what is kept, but work that ends before it is needed.
 */
import type { AttemptUid } from '../../model/ids.ts';
import type { Spot } from '../placement/fleet.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { PendingClass } from './classes.ts';
import type { Tier } from './order.ts';
import type { Placement } from './plan.ts';
import type { Planning } from './planning.ts';
import { bindingLimit } from './quota.ts';
import type { Reservation } from './reservations.ts';
import { earliest, reservedClaim } from './shadow.ts';
import type { PendingTask } from './view.ts';

/** Workers looked at for the earliest place of a task of its own. */
const LOOKS = 1000;
/** What is kept is waited for at least this long. */
const LEAST_PATIENCE_MS = 600_000;
/** What no place was found to keep for is not looked at again before this. */
const SEEK_AGAIN_MS = 10_000;
/** So many cores are not often free at once. */
const LARGE_CPU_MILLIS = 16_000;
/** From its assignment to its start, when its time limit begins to run, a task takes a while. */
const START_MS = 60_000;

export class Reserving {
  readonly #planning: Planning;
  /** Bands whose first that does not fit was found no place to keep: only the first is kept one. */
  readonly #inVain = new Set<number>();

  constructor(planning: Planning) {
    this.#planning = planning;
  }

  /** Gives up what is not wanted or cannot be used; what takes too long is reconsidered. */
  check(): void {
    const { view, nowMs } = this.#planning;
    const { reservations, fleet, classes } = view;
    for (const reservation of [...reservations.values()]) {
      const { of, claims, untilMs } = reservation;
      const usable = claims.every(({ worker: id }) => {
        const worker = fleet.worker(id);
        return worker !== undefined && fleet.accepts(worker, of.request);
      });
      // One whose quota was used up since could not use what is kept for it.
      const wanted = of.waiting > 0 && bindingLimit(of, claims.length, 0) === null;
      if (!wanted || !usable) this.#drop(reservation);
      else if (nowMs < untilMs) this.#planning.nextAt(untilMs);
      if (of.waiting > 0 && (!wanted || !usable || nowMs >= untilMs)) classes.open.add(of);
    }
  }

  /** Those that are not aged give way to higher bands. */
  liftYoung(): void {
    const { reservations } = this.#planning.view;
    for (const reservation of reservations.values()) {
      if (!reservation.aged) reservations.lift(reservation);
    }
  }

  layUpTo(band: number): void {
    const { reservations } = this.#planning.view;
    for (const reservation of [...reservations.values()]) {
      if (reservation.of.request.band > band) continue;
      if (!reservation.broken) {
        reservations.lay(reservation);
        continue;
      }
      this.#drop(reservation);
      this.#planning.tryAgain(reservation.of);
    }
  }

  /** Places it for the time until somebody else needs what is kept. */
  backfill(request: PlacementRequest, members: readonly PendingTask[]): Spot[] | null {
    const { view, policy, nowMs } = this.#planning;
    const { reservations } = view;
    if (!policy.backfill || reservations.size === 0 || request.timeLimitMs === 0) return null;
    const endMs = nowMs + START_MS + request.timeLimitMs + request.graceMs;
    const inTime = [...reservations.values()].filter(
      (each) => each.atMs !== null && endMs <= each.atMs && reservations.isLaid(each),
    );
    if (inTime.length === 0) return null;
    for (const reservation of inTime) reservations.lift(reservation);
    const spots = this.#planning.fit(request, members);
    for (const reservation of inTime) reservations.lay(reservation);
    return spots;
  }

  /** The class could not be placed: perhaps a place is kept for it. */
  consider(pending: PendingClass, members: PendingTask[], tier: Tier): void {
    const { view, nowMs, policy } = this.#planning;
    if (tier === 'demoted') return;
    const { sinceMs } = members[0] as PendingTask;
    const aged = tier === 'aged';
    if (!aged) view.ageing.watch(pending, sinceMs + policy.ageingMs);
    if (!aged && !isLarge(pending.request)) return;
    const current = view.reservations.at(pending.request.band);
    const kept = current?.of === pending;
    if (current && (current.aged || !aged) && !(kept && nowMs >= current.untilMs)) {
      if (!kept) view.ageing.line(pending, sinceMs);
      return;
    }
    const first = kept ? null : view.ageing.first(pending.request.band);
    if (first && first.pending !== pending && first.atMs < sinceMs) {
      view.ageing.line(pending, sinceMs);
      this.#next(pending.request.band);
      return;
    }
    view.ageing.leave(pending);
    this.#reserve(pending, members.length, aged, current);
    if (current && !kept && !view.reservations.has(current)) view.ageing.line(current.of, sinceMs);
  }

  /** It needs what was kept for it no more. */
  release(pending: PendingClass): void {
    const own = this.#planning.view.reservations.of(pending);
    if (own) this.#drop(own);
  }

  /** What was kept for it is not needed any more; what was kept for lower bands may be broken. */
  noticePlaced(pending: PendingClass, { tasks }: Placement): void {
    const { reservations } = this.#planning.view;
    if (reservations.size === 0) return;
    this.release(pending);
    for (const reservation of reservations.values()) {
      if (reservation.aged || reservation.of.request.band <= pending.request.band) continue;
      reservation.broken ||= tasks.some(({ claim }) =>
        reservation.claims.some(({ worker }) => worker === claim.worker),
      );
    }
  }

  #reserve(
    pending: PendingClass,
    count: number,
    aged: boolean,
    current: Reservation | undefined,
  ): void {
    const { view, nowMs } = this.#planning;
    const { request, shape } = pending;
    const soughtMs = nowMs - shape.noProspectAtMs;
    const soon = soughtMs >= 0 && soughtMs < SEEK_AGAIN_MS;
    if (!aged && !current && (soon || this.#inVain.has(request.band))) return;
    if (current) view.reservations.lift(current);
    const options = { nowMs, guess: aged, looks: LOOKS };
    const prospect = earliest(view, request, count, options);
    if (current) {
      view.reservations.lay(current);
      if (prospect || nowMs >= current.untilMs) this.#drop(current);
    }
    if (!prospect) {
      shape.noProspectAtMs = nowMs;
      this.#inVain.add(request.band);
      return;
    }
    const patienceMs = Math.max(
      LEAST_PATIENCE_MS,
      2 * (prospect.atMs - nowMs),
      current?.of === pending ? 2 * current.patienceMs : 0,
    );
    const untilMs = prospect.known ? prospect.atMs + LEAST_PATIENCE_MS : nowMs + patienceMs;
    const owner = (at: number): AttemptUid => `kept.${request.band}.${at}` as AttemptUid;
    view.reservations.add({
      of: pending,
      aged,
      claims: prospect.spots.map((spot, at) => reservedClaim(owner(at), request, spot)),
      atMs: prospect.known ? prospect.atMs : null,
      untilMs,
      patienceMs,
      broken: false,
    });
    this.#planning.nextAt(untilMs);
  }

  #drop(reservation: Reservation): void {
    const { view, made } = this.#planning;
    for (const worker of view.reservations.drop(reservation)) view.freed.add(worker);
    this.#next(reservation.of.request.band);
    // What was freed is looked at when a plan begins.
    made.more = true;
  }

  /** Who has waited longest for a place to be kept has its turn, in this plan or the next. */
  #next(band: number): void {
    const first = this.#planning.view.ageing.first(band);
    if (first) this.#planning.tryAgain(first.pending);
  }
}

/** What the end of one task seldom makes room for; all else finds its place in its turn. */
function isLarge({ gangSize, resources, placement }: PlacementRequest): boolean {
  const { device, cpuMillis } = resources;
  if (gangSize > 1 || placement.exclusive) return true;
  return device ? device.count > 1 : cpuMillis >= LARGE_CPU_MILLIS;
}
