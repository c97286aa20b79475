/**
 * How attempts and tasks end: stopped, lost or by themselves; retries and gang rounds follow from
 * it.
 */
import { moveAttempt } from '../core/lifecycle/attempt.ts';
import { taskEnded } from '../core/lifecycle/task.ts';
import { decideRetry } from '../core/retry.ts';
import type { Attempt, StopCause } from '../model/attempt.ts';
import type { Task } from '../model/task.ts';
import { releaseDependents } from './after.ts';
import { settle } from './charges.ts';
import { dropDownstream } from './downstream.ts';
import { endChildren } from './family.ts';
import { failRound, memberSucceeded } from './gangs.ts';
import { takesWork } from './health.ts';
import { faultHost, praiseHost } from './hosts.ts';
import { DONE, missing, stale } from './mutations.ts';
import type { AttemptEnding, GiveUp, Lose, Result, Stop } from './mutations.ts';
import { endingOf, type LiveJob } from './live.ts';
import { tellOfJob } from './notices.ts';
import type { State } from './state.ts';
import { revokeTokensOf } from './tokens.ts';

export function stop(state: State, mutation: Stop, nowMs: number): Result {
  const attempts: Attempt[] = [];
  for (const { uid, version } of mutation.attempts) {
    const attempt = state.attempts.get(uid);
    if (!attempt || attempt.version !== version) return stale(`attempt ${uid} has changed`);
    attempts.push(attempt);
  }
  for (const attempt of attempts) {
    stopAttempt(state, attempt, mutation.cause, mutation.reason, nowMs);
  }
  return DONE;
}

export function lose(state: State, mutation: Lose, nowMs: number): Result {
  for (const uid of mutation.attempts) {
    const attempt = state.attempts.get(uid);
    if (attempt) endAttempt(state, attempt, lostEnding(mutation.reason), nowMs);
  }
  return DONE;
}

export function giveUp(state: State, mutation: GiveUp, nowMs: number): Result {
  const live = state.jobs.get(mutation.job);
  if (!live) return missing(`job ${mutation.job}`);
  for (const task of live.tasks) {
    // A task that was placed once did start within its time; its retries may wait.
    if (task.state !== 'PENDING' || task.attempts > 0) continue;
    endTask(state, live, task, 'giveUp', mutation.reason, nowMs);
  }
  return DONE;
}

export function lostEnding(reason: string): AttemptEnding {
  return {
    cause: 'lost',
    exitCode: null,
    signal: null,
    message: reason,
    hostFault: true,
    stdoutBytes: null,
    stderrBytes: null,
  };
}

/**
 * Asks for a stop once; the claim stays held (as RELEASING) until the agent says the attempt ended.
 */
export function stopAttempt(
  state: State,
  attempt: Attempt,
  cause: StopCause,
  reason: string,
  nowMs: number,
): void {
  if (attempt.state === 'STOPPING') return;
  attempt.state = moveAttempt('stop', attempt.state);
  attempt.stopCause = cause;
  attempt.message = reason;
  state.touchAttempt(attempt);
  const claim = state.claims.get(attempt.uid);
  if (claim && claim.state !== 'RELEASING') {
    claim.state = 'RELEASING';
    state.touchClaim(claim);
  }
  state.wake.add(attempt.worker);
  state.note(nowMs, {
    kind: 'attempt.stopping',
    tenant: attempt.tenant,
    job: attempt.job,
    task: attempt.task,
    attempt: attempt.uid,
    worker: attempt.worker,
    data: { cause, reason },
  });
}

/** The attempt is over: its claim is free, and its task goes on, waits again or ends. */
export function endAttempt(
  state: State,
  attempt: Attempt,
  ending: AttemptEnding,
  nowMs: number,
): void {
  attempt.state = moveAttempt('end', attempt.state);
  // One that was told to stop before it had begun was stopped, whoever the agent blames.
  const stopped = ending.cause === 'never-started' ? attempt.stopCause : null;
  if (stopped) ending = { ...ending, cause: stopped, hostFault: false };
  attempt.cause = ending.cause;
  attempt.exitCode = ending.exitCode;
  attempt.signal = ending.signal;
  // Of what went on before only the reason of a stop is worth keeping.
  const reason = attempt.stopCause === null || ending.held ? '' : attempt.message;
  attempt.message = ending.message || reason;
  attempt.endedAtMs = nowMs;
  attempt.stdoutBytes = ending.stdoutBytes;
  attempt.stderrBytes = ending.stderrBytes;
  attempt.result = ending.result?.manifest ?? null;
  attempt.resultBytes = ending.result?.bytes ?? null;
  state.touchAttempt(attempt);
  judgeMachine(state, attempt, ending, nowMs);
  // Whoever noticed it, the controller or the agent: what is lost went with its machine.
  settle(state, attempt, ending.hostFault || ending.cause === 'lost', nowMs);
  state.dropAttempt(attempt);
  revokeTokensOf(state, attempt.uid, nowMs);
  const found = state.task(attempt.task);
  if (!found || taskEnded(found.task.state)) return;
  settleTask(state, found.live, found.task, attempt, ending, nowMs);
}

function settleTask(
  state: State,
  live: LiveJob,
  task: Task,
  attempt: Attempt,
  ending: AttemptEnding,
  nowMs: number,
): void {
  const { spec } = live.job;
  const gang = spec.shape.kind === 'gang';
  const cancelled = live.job.cancelRequestedAtMs !== null;
  // An older round is void, however its members ended: whoever failed it has paid already.
  const voidRound = gang && !cancelled && attempt.round < live.job.round;
  if (voidRound) {
    if (live.counts.FAILED > 0)
      endTask(state, live, task, 'fail', 'the gang failed', nowMs, attempt);
    else requeue(state, live, task, 0, 'another member of the gang failed', nowMs, attempt);
    return;
  }
  // Only the controller knows why it asked for a stop.
  const told = ending.cause === 'cancelled' ? { ...ending, message: attempt.message } : ending;
  const decision = decideRetry(told, {
    failures: gang ? sum(live.tasks, (member) => member.failures) : task.failures,
    interruptions: gang ? sum(live.tasks, (member) => member.interruptions) : task.interruptions,
    retries: spec.retries,
    maxInterruptions: spec.maxInterruptions,
    requeueExitCode: spec.rules?.requeueExitCode ?? 0,
    cancelled,
  });
  task.exitCode = ending.exitCode;
  switch (decision.kind) {
    case 'succeed':
      if (gang && !cancelled) memberSucceeded(state, live, task, attempt, decision.reason, nowMs);
      else endTask(state, live, task, 'succeed', decision.reason, nowMs, attempt);
      return;
    case 'cancel':
      endTask(state, live, task, 'cancel', attempt.message || decision.reason, nowMs, attempt);
      return;
    case 'fail':
      charge(task, decision.charge);
      endTask(state, live, task, 'fail', decision.reason, nowMs, attempt);
      if (gang) failRound(state, live, false, decision.reason, nowMs);
      return;
    case 'retry':
      charge(task, decision.charge);
      if (decision.charge === 'interruption') {
        tellOfJob(state, live, 'interrupted', { reason: decision.reason }, nowMs);
      }
      requeue(state, live, task, decision.delayMs, decision.reason, nowMs, attempt);
      if (gang) failRound(state, live, true, decision.reason, nowMs);
  }
}

function charge(task: Task, budget: 'failure' | 'interruption' | 'none'): void {
  if (budget === 'failure') task.failures++;
  if (budget === 'interruption') task.interruptions++;
}

export function requeue(
  state: State,
  live: LiveJob,
  task: Task,
  delayMs: number,
  reason: string,
  nowMs: number,
  attempt?: Attempt,
): void {
  task.notBeforeMs = delayMs > 0 ? nowMs + delayMs : 0;
  task.roundDone = false;
  state.moveTask(live, task, 'requeue', reason);
  noteTask(state, 'task.requeued', task, reason, nowMs, attempt);
}

export function endTask(
  state: State,
  live: LiveJob,
  task: Task,
  move: 'succeed' | 'fail' | 'cancel' | 'giveUp',
  reason: string,
  nowMs: number,
  attempt?: Attempt,
): void {
  task.endedAtMs = nowMs;
  task.roundDone = false;
  state.moveTask(live, task, move, reason);
  noteTask(state, 'task.ended', task, reason, nowMs, attempt);
  const { PENDING, ASSIGNED, RUNNING } = live.counts;
  if (PENDING + ASSIGNED + RUNNING === 0) endJob(state, live, nowMs);
}

/** Its last task has ended: what its row must keep, and who waited for it. */
function endJob(state: State, live: LiveJob, nowMs: number): void {
  const ending = endingOf(live);
  live.job.endedAtMs = nowMs;
  state.touchJob(live.job);
  state.changes.endings.set(live.job, ending);
  state.note(nowMs, {
    kind: 'job.ended',
    tenant: live.job.tenant,
    job: live.job.id,
    data: { state: ending.state, exitCode: ending.exitCode },
  });
  const { state: end, reason, exitCode } = ending;
  const kind = end === 'SUCCEEDED' ? 'done' : 'failed';
  tellOfJob(state, live, kind, { state: end, reason, exitCode }, nowMs);
  dropDownstream(state, live.job.id);
  releaseDependents(state, live, nowMs);
  endChildren(state, live.job, nowMs);
}

function noteTask(
  state: State,
  kind: 'task.ended' | 'task.requeued',
  task: Task,
  reason: string,
  nowMs: number,
  attempt?: Attempt,
): void {
  state.note(nowMs, {
    kind,
    tenant: task.tenant,
    job: task.job,
    task: task.id,
    ...(attempt && { attempt: attempt.uid, worker: attempt.worker }),
    data: { state: task.state, reason, cause: attempt?.cause ?? null, exitCode: task.exitCode },
  });
}

function sum(tasks: readonly Task[], value: (task: Task) => number): number {
  let total = 0;
  for (const task of tasks) total += value(task);
  return total;
}

/** What became of an attempt says something of its machine; a loss says who was silent, not why. */
function judgeMachine(
  state: State,
  attempt: Attempt,
  { cause, hostFault, message }: AttemptEnding,
  nowMs: number,
): void {
  const worker = state.workers.get(attempt.worker)?.worker;
  if (!worker || cause === 'lost') return;
  const at = { pool: worker.pool, name: worker.host };
  // What an agent could not fetch is as often somebody else's doing: its own word decides.
  if (hostFault && !takesWork(state, worker)) faultHost(state, at, 'attempt-fault', message, nowMs);
  if (!hostFault) praiseHost(state, at, nowMs - (attempt.startedAtMs ?? nowMs), nowMs);
}
