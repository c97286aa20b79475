/** When what is held will be free: by time limits where there are any, else by a guess. */
import type { Claim } from '../../model/claim.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { PlannerView } from './view.ts';

/** What has just begun is thought to go on at least this long. */
const LEAST_GUESS_MS = 60_000;

export interface End {
  atMs: number;
  /** From a time limit; otherwise it is a guess. */
  known: boolean;
}

export const NEVER: End = { atMs: Number.POSITIVE_INFINITY, known: false };

/** Without a limit, what has run long is thought to go on for as long again. */
export function endOf(view: PlannerView, claim: Claim, nowMs: number): End {
  const booked = view.claims.get(claim.owner);
  if (!booked || booked.claim.state === 'NOMINATED') return NEVER;
  const { timeLimitMs, graceMs } = booked.of.request;
  if (booked.claim.state === 'RELEASING') return { atMs: nowMs + graceMs, known: true };
  if (timeLimitMs > 0) {
    return { atMs: Math.max(nowMs, booked.sinceMs + timeLimitMs + graceMs), known: true };
  }
  const ranMs = Math.max(LEAST_GUESS_MS, nowMs - booked.sinceMs);
  return { atMs: nowMs + ranMs, known: false };
}

/** Whether a request cannot share a worker with what this claim is for. */
export function conflicts(view: PlannerView, claim: Claim, request: PlacementRequest): boolean {
  const held = view.claims.get(claim.owner)?.of.request ?? view.reservations.requestOf(claim.owner);
  if (!held) return false;
  const { exclusive, antiAffinity } = request.placement;
  if (exclusive || held.placement.exclusive) return true;
  if (antiAffinity === '' || held.placement.antiAffinity !== antiAffinity) return false;
  return held.tenant === request.tenant;
}
