/** What a pool is to keep, and what goes on there. */
import type { InstanceId } from '../../model/ids.ts';
import { instancesOf } from '../../state/instances.ts';
import type { LiveInstance } from '../../state/live.ts';
import type { State } from '../../state/state.ts';
import type { Mutate } from '../mutate.ts';

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

/** What runs on it is asked to stop, with its grace. */
export function stopAll(state: State, mutate: Mutate, id: InstanceId, reason: string): void {
  for (const worker of state.machines.instances.get(id)?.workers ?? []) {
    const running = state.workers.get(worker)?.attempts.values() ?? [];
    const attempts = [...running].map(({ uid, version }) => ({ uid, version }));
    if (attempts.length > 0) mutate({ kind: 'stop', attempts, cause: 'preempted', reason });
  }
}
