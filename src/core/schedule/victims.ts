/** Who may be interrupted for whom, and what that would cost. */
import type { Claim } from '../../model/claim.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { Booked, PlannerView } from './view.ts';

/** What ends together: a task, or a gang wherever its members are. */
export interface Unit {
  key: string;
  claims: Booked[];
  cost: number;
}

/** An interruption costs at least what one device does in ten minutes. */
const INTERRUPTION_MS = 600_000;
/** Work that agreed to be interrupted goes first. */
const INTERRUPTIBLE_WEIGHT = 1 / 8;
/** Each band counts for so many of the next. */
const BAND_WEIGHT = 4;
const LOWEST_BAND = 2;
/** So many cores count like a device. */
const CPU_MILLIS_PER_DEVICE = 16_000;

/** Lower bands; in its own band, what agreed to be interrupted, unless it agreed to that itself. */
export function mayInterrupt(request: PlacementRequest, victim: PlacementRequest): boolean {
  if (victim.band !== request.band) return victim.band > request.band;
  return victim.placement.interruptible && !request.placement.interruptible;
}

export function unitOf(view: PlannerView, booked: Booked, nowMs: number): Unit {
  const { request } = booked.of;
  let claims = [booked];
  if (request.gangSize > 1) {
    claims = [...view.claimsOf(booked.job)].flatMap((uid) => view.claims.get(uid) ?? []);
  }
  const key = request.gangSize > 1 ? booked.job : booked.claim.owner;
  let lost = 0;
  for (const { claim, sinceMs } of claims) {
    lost += INTERRUPTION_MS + Math.max(0, nowMs - sinceMs) * sizeOf(claim);
  }
  const band = BAND_WEIGHT ** Math.max(0, LOWEST_BAND - request.band);
  const weight = request.placement.interruptible ? INTERRUPTIBLE_WEIGHT : 1;
  return { key, claims, cost: lost * band * weight };
}

function sizeOf({ devices, share, cpuMillis }: Claim): number {
  return (devices.length * share) / 1000 + cpuMillis / CPU_MILLIS_PER_DEVICE;
}
