/** The deadline loop: time limits of what runs, `startWithin` of what waits. */
import type { Explanation } from '../core/explain.ts';
import type { Clock } from '../lib/clock.ts';
import type { LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { Mutate } from './mutate.ts';

export function createDeadlineStep(
  state: State,
  mutate: Mutate,
  clock: Clock,
  /** Why each class waits, as the scheduler said last. */
  reasons: ReadonlyMap<string, Explanation>,
): () => Promise<void> {
  /**
   * By attempt uid or job id, on the boot clock. The wall clock may step, so it is asked only once:
   * what was left when the limit was first seen.
   */
  const deadlines = new Map<string, number>();
  /** What a look did not find has begun since then, whatever the wall clock did meanwhile. */
  let lookedAtBootMs: number | null = null;
  // What an earlier controller left: of that only the wall clock tells how old it is.
  for (const live of state.timed) {
    deadlineOf(live.job.id, live.job.createdAtMs, live.job.spec.startWithinMs);
    for (const { uid, startedAtMs } of live.attempts.values()) {
      if (startedAtMs !== null) deadlineOf(uid, startedAtMs, live.job.spec.timeLimitMs);
    }
  }
  lookedAtBootMs = clock.bootMs();

  return async () => {
    const nowBootMs = clock.bootMs();
    for (const id of deadlines.keys()) {
      if (!state.attempts.has(id as never) && !state.jobs.has(id as never)) deadlines.delete(id);
    }
    for (const live of [...state.timed]) {
      if (live.job.spec.timeLimitMs > 0) stopLate(live);
      if (live.job.spec.startWithinMs > 0 && live.counts.PENDING > 0) giveUpLate(live);
    }
    lookedAtBootMs = nowBootMs;
  };

  function stopLate(live: LiveJob): void {
    const limitMs = live.job.spec.timeLimitMs;
    for (const attempt of live.attempts.values()) {
      if (attempt.startedAtMs === null || attempt.state === 'STOPPING') continue;
      if (!isOver(attempt.uid, attempt.startedAtMs, limitMs)) continue;
      mutate({
        kind: 'stop',
        attempts: [{ uid: attempt.uid, version: attempt.version }],
        cause: 'timed-out',
        reason: `the limit of ${limitMs / 1000} s is over`,
      });
    }
  }

  function giveUpLate(live: LiveJob): void {
    const limitMs = live.job.spec.startWithinMs;
    if (!isOver(live.job.id, live.job.createdAtMs, limitMs)) return;
    if (!live.tasks.some((task) => task.state === 'PENDING' && task.attempts === 0)) return;
    const why = reasons.get(live.classKey)?.sentence;
    const reason = `not started within ${limitMs / 1000} s${why ? `: ${why}` : ''}`;
    mutate({ kind: 'give-up', job: live.job.id, reason });
  }

  function isOver(id: string, sinceMs: number, limitMs: number): boolean {
    return clock.bootMs() >= deadlineOf(id, sinceMs, limitMs);
  }

  function deadlineOf(id: string, sinceMs: number, limitMs: number): number {
    const known = deadlines.get(id);
    if (known !== undefined) return known;
    const nowBootMs = clock.bootMs();
    const agedMs = Math.max(0, clock.now() - sinceMs);
    // Older than the look that did not find it: the clock has stepped. Rather a look late than
    // early.
    const stepped = lookedAtBootMs !== null && agedMs > nowBootMs - lookedAtBootMs;
    const deadline = nowBootMs + limitMs - (stepped ? 0 : Math.min(limitMs, agedMs));
    deadlines.set(id, deadline);
    return deadline;
  }
}
