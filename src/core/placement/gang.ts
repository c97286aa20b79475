/** Spots for all members of a gang at once, on workers that can reach each other. */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid } from '../../model/ids.ts';
import { claimOf, type Capacity } from './capacity.ts';
import { attributeOf, preference } from './constraints.ts';
import type { FleetWorker, Spot } from './fleet.ts';
import type { PlacementRequest } from './request.ts';

/** `usable` are the workers that could each take a member, if it had room. */
export function placeGang(
  request: PlacementRequest,
  size: number,
  usable: FleetWorker[],
): Spot[] | null {
  const groups = new Map<string, FleetWorker[]>();
  for (const worker of usable) {
    const key = groupOf(worker, request.placement.locality);
    if (key === null) continue;
    const group = groups.get(key);
    if (group) group.push(worker);
    else groups.set(key, [worker]);
  }
  for (const group of groups.values()) {
    const spots = fill(request, size, group);
    if (spots) return spots;
  }
  return null;
}

/** A worker that lacks the attribute shares its value with nobody. */
function groupOf({ info }: FleetWorker, locality: string): string | null {
  if (locality === '') return info.network;
  const value = attributeOf(info, locality);
  return value === undefined ? null : `${JSON.stringify(info.network)}${value}`;
}

/** Books the members one by one, then gives everything back: the caller books what it keeps. */
function fill(request: PlacementRequest, size: number, group: FleetWorker[]): Spot[] | null {
  const { exclusive, antiAffinity } = request.placement;
  const mostEach = exclusive || antiAffinity !== '' ? 1 : size;
  const preferred = group.toSorted(
    (a, b) => preference(b.info, request) - preference(a.info, request),
  );
  const booked: { capacity: Capacity; claim: Claim }[] = [];
  for (const { info, capacity } of preferred) {
    for (let here = 0; here < mostEach && booked.length < size; here++) {
      const fit = capacity.fit(request.resources);
      if (!fit.fits) break;
      const claim = claimOf(`${booked.length}` as AttemptUid, info.id, request.resources, fit);
      capacity.take(claim);
      booked.push({ capacity, claim });
    }
  }
  for (const { capacity, claim } of booked) capacity.give(claim);
  if (booked.length < size) return null;
  return booked.map(({ claim: { worker, devices, ports } }) => ({ worker, devices, ports }));
}
