/** What a pool is to keep, and what goes on there. */
import { instancesOf } from '../../state/instances.ts';
import type { LiveInstance } from '../../state/live.ts';
import type { State } from '../../state/state.ts';

/** Instances that the pool is to keep. */
export function wantedCount(state: State, pool: string): number {
  return instancesOf(state, pool).filter(({ instance }) => instance.state !== 'DESTROYING').length;
}

/** Nothing runs on it and nothing is promised there. */
export function isEmpty(state: State, { workers }: LiveInstance): boolean {
  for (const id of workers) {
    const live = state.workers.get(id);
    if (live && live.attempts.size > 0) return false;
  }
  for (const { claim } of state.nominations.values()) if (workers.has(claim.worker)) return false;
  return true;
}
