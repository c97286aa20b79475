/**
 * Gang rounds. All members of a gang run in the same round; the round succeeds when every member's
 * attempt has exited 0, and one member's failure ends it: the others are stopped, and all wait for
 * the next round together, or all fail. A member that finished early stays RUNNING until the round
 * is over, because SUCCEEDED is for ever and a failed round is not.
 */
import { taskEnded } from '../core/lifecycle/task.ts';
import type { Attempt } from '../model/attempt.ts';
import type { Task } from '../model/task.ts';
import { endTask, requeue, stopAttempt } from './endings.ts';
import type { LiveJob } from './live.ts';
import type { State } from './state.ts';

export function memberSucceeded(
  state: State,
  live: LiveJob,
  task: Task,
  attempt: Attempt,
  reason: string,
  nowMs: number,
): void {
  if (task.state === 'ASSIGNED') state.moveTask(live, task, 'run', '');
  task.roundDone = true;
  task.reason = 'done, waiting for the rest of the gang';
  state.touchTask(task);
  if (!live.tasks.every((member) => member.roundDone)) return;
  for (const member of live.tasks) {
    endTask(state, live, member, 'succeed', reason, nowMs, member === task ? attempt : undefined);
  }
}

export function failRound(
  state: State,
  live: LiveJob,
  again: boolean,
  reason: string,
  nowMs: number,
): void {
  live.job.round++;
  state.touchJob(live.job);
  for (const attempt of live.attempts.values()) {
    stopAttempt(state, attempt, 'gang-failed', `a member of the gang failed: ${reason}`, nowMs);
  }
  for (const task of live.tasks) {
    if (taskEnded(task.state) || live.attempts.has(task.index)) continue;
    if (!again) endTask(state, live, task, 'fail', 'another member of the gang failed', nowMs);
    else if (task.state !== 'PENDING') {
      requeue(state, live, task, 0, 'another member of the gang failed', nowMs);
    } else {
      // Its version changes with the round, so that no plan made for the old round can place it.
      state.touchTask(task);
    }
  }
}
