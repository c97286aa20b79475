/** How many tasks wait, by what they ask for: as the state and as the planner's copy has it. */
import type { PlannerView } from '../../src/core/schedule/view.ts';
import type { State } from '../../src/state/state.ts';

export function pendingByClass(state: State): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { waitsFor, classKey, counts: of } of state.jobs.values()) {
    if (waitsFor || of.PENDING === 0) continue;
    counts.set(classKey, (counts.get(classKey) ?? 0) + of.PENDING);
  }
  return counts;
}

export function waitingByClass(view: PlannerView): Map<string, number> {
  const all = [...view.classes.values()].filter(({ waiting }) => waiting > 0);
  return new Map(all.map(({ request, waiting }) => [request.key, waiting]));
}
