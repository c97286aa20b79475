/**
 * Cancelling: what waits ends at once, what runs is asked to stop and ends when the agent says so.
 */
import { endTask, stopAttempt } from './endings.ts';
import { DONE, missing, type Cancel, type Result } from './mutations.ts';
import type { State } from './state.ts';

export function cancel(state: State, mutation: Cancel, nowMs: number): Result {
  const live = state.jobs.get(mutation.job);
  if (!live) return missing(`job ${mutation.job}`);
  if (live.job.cancelRequestedAtMs !== null || live.job.endedAtMs !== null) return DONE;
  live.job.cancelRequestedAtMs = nowMs;
  live.job.cancelledBy = mutation.by;
  state.touchJob(live.job);
  state.note(nowMs, {
    kind: 'job.cancel-requested',
    tenant: live.job.tenant,
    job: live.job.id,
    data: { by: mutation.by },
  });
  const reason = `cancelled by ${mutation.by}`;
  for (const attempt of live.attempts.values()) {
    stopAttempt(state, attempt, 'cancelled', reason, nowMs);
  }
  for (const task of live.tasks) {
    // A gang member whose try ended well, but whose round is not over, has no attempt to stop.
    const idle = task.state === 'PENDING' || (task.roundDone && !live.attempts.has(task.index));
    if (idle) endTask(state, live, task, 'cancel', reason, nowMs);
  }
  return DONE;
}
