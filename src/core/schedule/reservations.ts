/**
 * Places kept for work that does not fit yet: claims in the planner's copy only, lying on top of
 * what still runs there, so that nobody else is given what they are kept for. At most one a band.
 */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import type { Fleet } from '../placement/fleet.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { PendingClass } from './classes.ts';

export interface Reservation {
  of: PendingClass;
  /** It has waited too long: no band overtakes it. */
  aged: boolean;
  claims: Claim[];
  /** When what runs there must have ended, by its time limits; null: nobody knows. */
  atMs: number | null;
  /** By then it should have been used; if not, another place is looked for. */
  untilMs: number;
  patienceMs: number;
  /** A higher band has taken of it. */
  broken: boolean;
}

export class Reservations {
  readonly #fleet: Fleet;
  readonly #byBand = new Map<number, Reservation>();
  readonly #laid = new Set<Reservation>();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  get size(): number {
    return this.#byBand.size;
  }

  values(): Iterable<Reservation> {
    return this.#byBand.values();
  }

  at(band: number): Reservation | undefined {
    return this.#byBand.get(band);
  }

  of(pending: PendingClass): Reservation | undefined {
    const reservation = this.#byBand.get(pending.request.band);
    return reservation?.of === pending ? reservation : undefined;
  }

  /**
   * Laid ones that give way to this: what has not waited too long to what has, and of two alike
   * the one made later. Else each of two could keep the other from its place for ever.
   */
  yielding(to: Reservation): Reservation[] {
    const found: Reservation[] = [];
    let later = false;
    // In the order in which they were made.
    for (const other of this.#byBand.values()) {
      if (other === to) later = true;
      else if (!this.#laid.has(other) || (other.aged && !to.aged)) continue;
      else if (later || (to.aged && !other.aged)) found.push(other);
    }
    return found;
  }

  has(reservation: Reservation): boolean {
    return this.#byBand.get(reservation.of.request.band) === reservation;
  }

  add(reservation: Reservation): void {
    this.#byBand.delete(reservation.of.request.band);
    this.#byBand.set(reservation.of.request.band, reservation);
    this.lay(reservation);
  }

  /** Returns the workers where that leaves room. */
  drop(reservation: Reservation): WorkerId[] {
    this.lift(reservation);
    this.#byBand.delete(reservation.of.request.band);
    return reservation.claims.map(({ worker }) => worker);
  }

  isLaid(reservation: Reservation): boolean {
    return this.#laid.has(reservation);
  }

  lay(reservation: Reservation): void {
    if (this.#laid.has(reservation)) return;
    this.#laid.add(reservation);
    for (const claim of reservation.claims) this.#fleet.take(claim, reservation.of.request);
  }

  lift(reservation: Reservation): void {
    if (!this.#laid.delete(reservation)) return;
    for (const { owner } of reservation.claims) this.#fleet.give(owner);
  }

  /** The request that such a claim stands for. */
  requestOf(owner: AttemptUid): PlacementRequest | undefined {
    for (const { of, claims } of this.#byBand.values()) {
      if (claims.some((claim) => claim.owner === owner)) return of.request;
    }
    return undefined;
  }
}
