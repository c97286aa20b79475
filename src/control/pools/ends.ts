/**
 * Machines that end at a known time: work is asked to stop in time to leave its checkpoint, and
 * planners hear what is left of each worker as it shrinks.
 */
import type { Clock } from '../../lib/clock.ts';
import type { WorkerId } from '../../model/ids.ts';
import { LAST_WORDS_MS, lastsOf } from '../../state/deltas.ts';
import type { LiveWorker } from '../../state/live.ts';
import type { State } from '../../state/state.ts';
import type { Mutate } from '../mutate.ts';

export function createEndsStep(state: State, mutate: Mutate, clock: Clock): () => Promise<void> {
  /** What planners were last told. */
  const told = new Map<WorkerId, number>();

  return async () => {
    const nowMs = clock.now();
    for (const id of told.keys()) if (!state.workers.has(id)) told.delete(id);
    for (const live of state.workers.values()) {
      const { worker } = live;
      if (worker.endsAtMs === null) continue;
      const left = lastsOf(worker, undefined, nowMs)?.ms ?? 0;
      if (told.get(worker.id) !== left) {
        told.set(worker.id, left);
        state.deltas.workers.add(worker.id);
      }
      stopInTime(live, worker.endsAtMs, nowMs);
    }
  };

  function stopInTime({ worker, attempts }: LiveWorker, endsAtMs: number, nowMs: number): void {
    for (const attempt of [...attempts.values()]) {
      if (attempt.state === 'STOPPING') continue;
      const graceMs = state.jobs.get(attempt.job)?.job.spec.graceMs ?? 0;
      if (nowMs < endsAtMs - graceMs - LAST_WORDS_MS) continue;
      mutate({
        kind: 'stop',
        attempts: [{ uid: attempt.uid, version: attempt.version }],
        cause: 'preempted',
        reason: `the machine of worker ${worker.name} ends`,
      });
    }
  }
}
