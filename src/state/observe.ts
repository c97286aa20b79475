/** What agents observe, and what follows for attempts and tasks. Stale reports have no effect. */
import { moveAttempt } from '../core/lifecycle/attempt.ts';
import { NO_FACTS, type Attempt } from '../model/attempt.ts';
import { endAttempt, lostEnding, stopAttempt } from './endings.ts';
import { DONE, missing, type Observe, type Observed, type Result } from './mutations.ts';
import { tellOfJob, tellOfStart } from './notices.ts';
import type { LiveWorker } from './live.ts';
import type { State } from './state.ts';

/** How the message of an attempt begins while its devices are idle. */
export const IDLE_BEGINNING = 'its devices are idle: ';

export function observe(state: State, mutation: Observe, nowMs: number): Result {
  const live = state.workers.get(mutation.worker);
  if (!live) return missing(`worker ${mutation.worker}`);
  for (const seen of mutation.observed) {
    const attempt = state.attempts.get(seen.uid);
    // Unknown, or run by another worker: not this agent's to report. Its sync reply says stop.
    if (attempt?.worker === mutation.worker) observeOne(state, attempt, seen, nowMs);
  }
  if (mutation.complete) loseMissing(state, live, mutation.observed, nowMs);
  return DONE;
}

function observeOne(state: State, attempt: Attempt, seen: Observed, nowMs: number): void {
  if (seen.ending) {
    if (attempt.startedAtMs === null && seen.ending.cause !== 'never-started') {
      markStarted(state, attempt, nowMs);
    }
    // What it used joins what it ran with.
    if (seen.facts) attempt.facts = { ...attempt.facts, ...seen.facts };
    endAttempt(state, attempt, seen.ending, nowMs);
    return;
  }
  if (seen.facts && attempt.facts === NO_FACTS) {
    attempt.facts = seen.facts;
    state.touchAttempt(attempt);
  }
  // Why it was stopped says more than what it does about it.
  const isNews = seen.progress !== undefined && attempt.stopCause === null;
  if (isNews && seen.progress !== attempt.message) {
    attempt.message = seen.progress ?? '';
    state.touchAttempt(attempt);
  }
  if (seen.state === 'RUNNING') observeIdle(state, attempt, seen.idle, nowMs);
  if (seen.state === 'STARTING' && attempt.state === 'ASSIGNED') {
    attempt.state = moveAttempt('start', attempt.state);
    state.touchAttempt(attempt);
  }
  if (seen.state === 'RUNNING' && attempt.startedAtMs === null) {
    markStarted(state, attempt, nowMs);
    if (attempt.state !== 'STOPPING') attempt.state = moveAttempt('run', attempt.state);
    state.touchAttempt(attempt);
    state.note(nowMs, {
      kind: 'task.running',
      tenant: attempt.tenant,
      job: attempt.job,
      task: attempt.task,
      attempt: attempt.uid,
      worker: attempt.worker,
    });
  }
}

/**
 * The message says so as long as it lasts, and its beginning is an event: once, for a controller
 * that starts anew finds the message.
 */
function observeIdle(state: State, attempt: Attempt, idle: Observed['idle'], nowMs: number): void {
  if (attempt.stopCause !== null) return;
  const told = attempt.message.startsWith(IDLE_BEGINNING);
  if (!idle) {
    if (!told) return;
    attempt.message = '';
    state.touchAttempt(attempt);
    return;
  }
  if (told) return;
  const message = `${IDLE_BEGINNING}${idle.message}`;
  attempt.message = message;
  state.touchAttempt(attempt);
  const { tenant, job, task, uid, worker } = attempt;
  const data = { message, stop: idle.stop };
  state.note(nowMs, { kind: 'job.idle', tenant, job, task, attempt: uid, worker, data });
  const live = state.jobs.get(job);
  if (live) tellOfJob(state, live, 'idle', { reason: message }, nowMs);
  if (idle.stop) stopAttempt(state, attempt, 'cancelled', message, nowMs);
}

function markStarted(state: State, attempt: Attempt, nowMs: number): void {
  attempt.startedAtMs = nowMs;
  const found = state.task(attempt.task);
  if (!found) return;
  tellOfStart(state, found.live, attempt.worker, nowMs);
  found.task.startedAtMs ??= nowMs;
  if (found.task.state === 'ASSIGNED') state.moveTask(found.live, found.task, 'run', '');
}

/**
 * An attempt this agent once reported and now does not have is gone with its files. One it never
 * reported may still be on its way and is sent again.
 */
function loseMissing(state: State, live: LiveWorker, observed: Observed[], nowMs: number): void {
  if (live.attempts.size === 0) return;
  const seen = new Set(observed.map((one) => one.uid));
  for (const attempt of [...live.attempts.values()]) {
    const reported = attempt.state === 'STARTING' || attempt.startedAtMs !== null;
    if (!reported || seen.has(attempt.uid)) continue;
    endAttempt(state, attempt, lostEnding('the agent no longer knows it'), nowMs);
  }
}
