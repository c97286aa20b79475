/**
 * The earliest time and place for a request, given when what runs will end: where a reservation is
 * made, and when something that waits may start.
 */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid } from '../../model/ids.ts';
import { Capacity, claimOf } from '../placement/capacity.ts';
import { attributeOf } from '../placement/constraints.ts';
import type { FleetWorker, Spot } from '../placement/fleet.ts';
import type { PlacementRequest } from '../placement/request.ts';
import { conflicts, endOf, NEVER, type End } from './ends.ts';
import type { PlannerView } from './view.ts';

export interface Prospect {
  atMs: number;
  /** By time limits alone, without a guess. */
  known: boolean;
  spots: Spot[];
}

export interface ProspectOptions {
  nowMs: number;
  /** Also by guesses, where there are no time limits. */
  guess: boolean;
  /** Looks at about so many workers only, for a request of one. */
  looks: number;
}

interface Opening extends End {
  spot: Spot;
}

/** For `count` members at once; null: never, as far as is known. */
export function earliest(
  view: PlannerView,
  request: PlacementRequest,
  count: number,
  options: ProspectOptions,
): Prospect | null {
  const stride = count > 1 ? 1 : Math.max(1, Math.floor(view.fleet.size / options.looks));
  const groups = new Map<string, Opening[]>();
  let at = 0;
  let best: Opening | null = null;
  for (const worker of view.fleet.workers()) {
    if (at++ % stride !== 0 || !view.fleet.accepts(worker, request)) continue;
    if (count === 1) {
      const [first] = openingsOn(view, worker, request, 1, best?.atMs ?? FOREVER, options);
      if (first && (!best || first.atMs < best.atMs)) best = first;
      if (best && best.atMs <= options.nowMs) break;
      continue;
    }
    const group = groupOf(worker, request.placement.locality);
    if (group === null) continue;
    const found = openingsOn(view, worker, request, count, FOREVER, options);
    const list = groups.get(group);
    if (list) list.push(...found);
    else groups.set(group, found);
  }
  if (best) return { atMs: best.atMs, known: best.known, spots: [best.spot] };
  return soonestGroup([...groups.values()], count);
}

const FOREVER = Number.POSITIVE_INFINITY;

/** When one member fits on the worker, then a second beside it, and so on. */
function openingsOn(
  view: PlannerView,
  worker: FleetWorker,
  request: PlacementRequest,
  count: number,
  beforeMs: number,
  { nowMs, guess }: ProspectOptions,
): Opening[] {
  const { exclusive, antiAffinity } = request.placement;
  const mostEver = exclusive || antiAffinity !== '' ? 1 : count;
  const ends = [...worker.claims.values()].map((claim) => {
    const end = endOf(view, claim, nowMs);
    const conflict = conflicts(view, claim, request);
    return { claim, end: end.known || guess ? end : NEVER, conflict };
  });
  ends.sort((a, b) => a.end.atMs - b.end.atMs);
  let conflicting = ends.filter(({ conflict }) => conflict).length;
  const scratch = scratchOf(worker);
  const found: Opening[] = [];
  let now: End = { atMs: nowMs, known: true };
  for (let gone = 0; now.atMs < FOREVER; gone++) {
    const most = conflicting === 0 ? mostEver : 0;
    while (found.length < most) {
      const fit = scratch.fit(request.resources);
      if (!fit.fits) break;
      const spot = { worker: worker.info.id, devices: fit.devices, ports: fit.ports };
      found.push({ ...now, spot });
      scratch.take(claimOf(MEMBER, worker.info.id, request.resources, fit));
    }
    const next = ends[gone];
    if (!next || found.length >= mostEver || next.end.atMs >= beforeMs) break;
    scratch.give(next.claim);
    if (next.conflict) conflicting--;
    now = { atMs: next.end.atMs, known: now.known && next.end.known };
  }
  return found;
}

const MEMBER = 'member' as AttemptUid;

/** A copy to try things on. */
export function scratchOf({ info, claims }: FleetWorker): Capacity {
  const scratch = new Capacity(info.resources);
  for (const claim of claims.values()) scratch.take(claim);
  return scratch;
}

function soonestGroup(groups: Opening[][], count: number): Prospect | null {
  let best: Prospect | null = null;
  for (const openings of groups) {
    if (openings.length < count) continue;
    const chosen = openings.toSorted((a, b) => a.atMs - b.atMs).slice(0, count);
    const last = chosen.at(-1) as Opening;
    if (best && best.atMs <= last.atMs) continue;
    const known = chosen.every((opening) => opening.known);
    best = { atMs: last.atMs, known, spots: chosen.map(({ spot }) => spot) };
  }
  return best;
}

/** Members of a gang share a network, and a locality where they ask for one. */
export function groupOf({ info }: FleetWorker, locality: string): string | null {
  if (locality === '') return info.network;
  const value = attributeOf(info, locality);
  return value === undefined ? null : `${JSON.stringify(info.network)}${value}`;
}

/** What a reservation holds of a spot: no ports, those are found when it is used. */
export function reservedClaim(
  owner: AttemptUid,
  request: PlacementRequest,
  { worker, devices }: Spot,
): Claim {
  return claimOf(owner, worker, request.resources, { devices, ports: [] });
}
