/** The deadline loop: time limits of what runs, `startWithin` of what waits. */
import type { Clock } from '../lib/clock.ts';
import type { Attempt } from '../model/attempt.ts';
import type { AttemptUid } from '../model/ids.ts';
import type { LiveJob, State } from '../state/state.ts';
import type { Mutate } from './mutate.ts';

export function createDeadlineStep(
  state: State,
  mutate: Mutate,
  clock: Clock,
): () => Promise<void> {
  // Wall time may step; what is left of a limit is therefore counted on the boot clock once it is seen.
  const deadlines = new Map<AttemptUid, number>();
  return async () => {
    for (const uid of deadlines.keys()) if (!state.attempts.has(uid)) deadlines.delete(uid);
    for (const live of [...state.timed]) {
      if (live.job.spec.timeLimitMs > 0) stopLate(live);
      if (live.job.spec.startWithinMs > 0 && live.counts.PENDING > 0) giveUpLate(live);
    }
  };

  function stopLate(live: LiveJob): void {
    for (const attempt of live.attempts.values()) {
      if (attempt.startedAtMs === null || attempt.state === 'STOPPING') continue;
      if (clock.bootMs() < deadlineOf(live, attempt, attempt.startedAtMs)) continue;
      mutate({
        kind: 'stop',
        attempts: [{ uid: attempt.uid, version: attempt.version }],
        cause: 'timed-out',
        reason: `the limit of ${live.job.spec.timeLimitMs / 1000} s is over`,
      });
    }
  }

  function deadlineOf(live: LiveJob, attempt: Attempt, startedAtMs: number): number {
    const known = deadlines.get(attempt.uid);
    if (known !== undefined) return known;
    const limitMs = live.job.spec.timeLimitMs;
    const usedMs = Math.min(limitMs, Math.max(0, clock.now() - startedAtMs));
    const deadline = clock.bootMs() + limitMs - usedMs;
    deadlines.set(attempt.uid, deadline);
    return deadline;
  }

  function giveUpLate(live: LiveJob): void {
    const waitedMs = clock.now() - live.job.createdAtMs;
    if (waitedMs < live.job.spec.startWithinMs) return;
    if (!live.tasks.some((task) => task.state === 'PENDING' && task.attempts === 0)) return;
    mutate({
      kind: 'give-up',
      job: live.job.id,
      reason: `not started within ${live.job.spec.startWithinMs / 1000} s`,
    });
  }
}
