/** Whether a gang could ever be whole: how many of its members the workers of one group hold. */
import type { AttemptUid } from '../../model/ids.ts';
import { Capacity, claimOf } from '../placement/capacity.ts';
import type { Fleet, FleetWorker } from '../placement/fleet.ts';
import type { PlacementRequest } from '../placement/request.ts';
import { groupOf } from '../schedule/shadow.ts';
import type { Never } from './never.ts';
import { count } from './words.ts';

/** Null when all its members would fit somewhere, if nothing else ran. */
export function gangNeverFits(fleet: Fleet, request: PlacementRequest): Never | null {
  const { gangSize, placement } = request;
  const groups = new Map<string, number>();
  let most = 0;
  for (const worker of fleet.workers()) {
    const group = groupOf(worker, placement.locality);
    if (group === null || !fleet.accepts(worker, request)) continue;
    const before = groups.get(group) ?? 0;
    const members = before + membersOn(worker, request, gangSize - before);
    groups.set(group, members);
    most = Math.max(most, members);
    if (most >= gangSize) return null;
  }
  const where = placement.locality === '' ? 'network' : `${placement.locality} on one network`;
  return {
    sentence:
      `it needs room for ${count(gangSize, 'member')} on one ${where}; ` +
      `the largest holds ${most}, even when nothing else runs`,
    suggestions: [`join workers for ${gangSize - most} more on one ${where}`],
  };
}

/** On the worker as it would be empty. */
function membersOn({ info }: FleetWorker, request: PlacementRequest, wanted: number): number {
  const { exclusive, antiAffinity } = request.placement;
  const most = exclusive || antiAffinity !== '' ? 1 : wanted;
  const empty = new Capacity(info.resources);
  for (let members = 0; ; members++) {
    const fit = members < most && empty.fit(request.resources);
    if (!fit || !fit.fits) return members;
    empty.take(claimOf('' as AttemptUid, info.id, request.resources, fit));
  }
}
