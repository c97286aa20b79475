/** Whether lower work is interrupted for the head of a class, and booking that. */
import type { PlacementRequest } from '../placement/request.ts';
import { PRIORITIES } from '../../model/job.ts';
import { explainNomination } from '../explain.ts';
import type { PendingClass } from './classes.ts';
import type { Planning } from './planning.ts';
import { choosePreemption } from './preempt.ts';
import type { PendingTask } from './view.ts';

/** A search looks at many workers; the rest is left to later plans. */
const SEARCHES_PER_PLAN = 8;
/** What was sought in vain is not sought again before this. */
const SEARCH_AGAIN_MS = 10_000;

export function tryPreemption(
  planning: Planning,
  pending: PendingClass,
  request: PlacementRequest,
  members: PendingTask[],
): boolean {
  const { view, nowMs, policy, telling } = planning;
  if (!policy.preemption || !view.hasWorkBelow(request)) return false;
  const { shape } = pending;
  const againAtMs = shape.noVictimsAtMs + SEARCH_AGAIN_MS;
  // The wall clock may have gone back since.
  const tooSoon = nowMs < againAtMs && nowMs >= shape.noVictimsAtMs;
  if (tooSoon || planning.searches >= SEARCHES_PER_PLAN) {
    view.ageing.tryAt(pending, tooSoon ? againAtMs : nowMs + SEARCH_AGAIN_MS);
    return false;
  }
  planning.searches++;
  const found = choosePreemption(view, request, members.length, nowMs);
  if (!found) {
    shape.noVictimsAtMs = nowMs;
    view.ageing.tryAt(pending, nowMs + SEARCH_AGAIN_MS);
    return false;
  }
  const victims = [];
  for (const { claims } of found.units) {
    for (const { claim, job, sinceMs, of } of claims) {
      if (claim.state !== 'HELD') continue;
      victims.push({ uid: claim.owner });
      const leaving = { ...claim, state: 'RELEASING' as const };
      view.book({ claim: leaving, job, classKey: of.request.key, sinceMs });
    }
  }
  const reason = `made room for ${PRIORITIES[request.band] ?? 'other'} work`;
  const placement = planning.nominate(pending, members, found.spots);
  planning.made.preemptions.push({ ...placement, victims, reason });
  planning.reserving.release(pending);
  telling.tell(pending, explainNomination(view, placement.tasks, victims.length));
  return true;
}
