/** Why a job waits, asked now: in full, from the same data the next plan would use. */
import type { JobId } from '../../model/ids.ts';
import {
  explainArrayLimit,
  explainClass,
  explainLimit,
  explainMisfit,
  explainNomination,
  explanation,
  type Explanation,
} from '../explain.ts';
import type { PendingClass } from '../schedule/classes.ts';
import { bindingLimit } from '../schedule/quota.ts';
import type { PlannerView } from '../schedule/view.ts';
import { duration } from './words.ts';

/** Null when nothing of it waits. Changes nothing. */
export function explainJob(view: PlannerView, job: JobId, nowMs: number): Explanation | null {
  const pending = view.classes.ofJob(job);
  if (!pending) return null;
  const [nomination] = view.nominations.ofJob(job);
  if (nomination) return explainNomination(view, [...nomination.claims.values()], 0);
  const out = pending.queue.outOfOrder(job);
  if (out === 'aside') return explainArrayLimit(pending.request.arrayLimit);
  if (out === 'incomplete') {
    return explanation('INCOMPLETE', 'not all members of the gang can start yet');
  }
  if (out === 'later') {
    const inMs = Math.max(0, (pending.queue.wakesAt(job) ?? nowMs) - nowMs);
    return explanation('BACKOFF', `is tried again in ${duration(inMs)}`);
  }
  const { gangSize } = pending.request;
  const holds = view.prices.holds(pending.request).map(({ micros }) => micros);
  const binding = bindingLimit(pending, gangSize, holds.length > 0 ? Math.min(...holds) : 0);
  if (binding?.mode === 'hard') return explainLimit(binding, pending.request);
  if (fitsNow(view, pending)) {
    return explanation('BEHIND', 'there is room, but others go first or a plan is being made');
  }
  return explainClass(view, pending, explainMisfit(view, pending.request), binding);
}

function fitsNow(view: PlannerView, pending: PendingClass): boolean {
  const { fleet, reservations } = view;
  const { request } = pending;
  const own = reservations.of(pending);
  if (own) reservations.lift(own);
  const fits =
    request.gangSize > 1 ? fleet.placeGang(request, request.gangSize) : fleet.place(request);
  if (own) reservations.lay(own);
  return fits !== null;
}
